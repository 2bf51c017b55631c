// The server that ours is measured beside: probot as it is meant to be run, with a handler of all events that does nothing.
// Everything is told by its own environment variables: APP_ID, PRIVATE_KEY, WEBHOOK_SECRET, HOST, PORT, LOG_LEVEL.
import { run } from "probot";

await run((app) => {
  app.onAny(async () => {});
});
