"""How fast a delivery is answered, measured beside another server."""
