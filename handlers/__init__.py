"""The web application: receives webhooks and queues work."""
