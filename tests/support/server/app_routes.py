"""What the App asks about itself: tokens, installations, deliveries, and its birth from a
manifest.
"""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlencode

from tests.support.server.access import LEVELS
from tests.support.server.call import (
    Call,
    Refusal,
    Reply,
    World,
    not_found,
    page_size,
    the_repository,
)
from tests.support.server.records import HookDelivery, Installation, Json, now, stamp
from tests.support.server.routing import Route


def _installation(world: World, call: Call) -> Installation:
    number = call.params["installation_id"]
    found = world.state.installations.get(int(number)) if number.isdigit() else None
    if found is None:
        raise not_found()
    return found


def create_token(world: World, call: Call) -> Reply:
    """A token, narrowed to what was asked for."""
    one = _installation(world, call)
    if one.suspended:
        raise Refusal(403, "This installation has been suspended")
    granted = {"metadata": "read", **one.permissions}
    wanted: dict[str, str] = {"metadata": "read", **(call.field("permissions") or granted)}
    for name, level in wanted.items():
        if (
            level not in LEVELS
            or name not in granted
            or LEVELS.index(level) > LEVELS.index(granted[name])
        ):
            raise Refusal(422, "The permissions requested are not granted to this installation.")
    names = _narrowed(world, call, one)
    token = world.state.mint(one.id, names, wanted)
    body: Json = {
        "token": token.value,
        "expires_at": stamp(token.expires_at),
        "permissions": wanted,
    }
    body["repository_selection"] = "selected"
    if names is not None:
        body["repositories"] = [
            world.bodies.repository(world.state.repositories[name.lower()]) for name in names
        ]
    return Reply(201, body)


def _narrowed(world: World, call: Call, one: Installation) -> list[str] | None:
    names, ids = call.field("repositories"), call.field("repository_ids")
    if names is None and ids is None:
        return None
    known = world.state.repositories
    covered = [known[name.lower()] for name in one.repositories if name.lower() in known]
    chosen = [
        each
        for each in covered
        if each.name.lower() in map(str.lower, names or ()) or each.id in (ids or ())
    ]
    if len(chosen) < len(set(map(str.lower, names or ()))) + len(set(ids or ())):
        message = "There is at least one repository that does not exist or is not accessible to the parent installation."
        raise Refusal(422, message)
    return [each.full_name for each in chosen]


def get_app(world: World, _call: Call) -> Reply:
    """The App."""
    return Reply(200, world.bodies.app(world.state.app, full=True))


def get_installation(world: World, call: Call) -> Reply:
    """One installation."""
    return Reply(200, world.bodies.installation(_installation(world, call)))


def repository_installation(world: World, call: Call) -> Reply:
    """The installation that covers a repository."""
    found = world.state.covering(the_repository(world, call).full_name)
    if found is None:
        raise not_found()
    return Reply(200, world.bodies.installation(found))


def delivery(one: HookDelivery) -> Json:
    """A tried delivery, as lists show it."""
    repository, installation = one.payload.get("repository"), one.payload.get("installation")
    return {
        "id": one.id,
        "guid": one.guid,
        "delivered_at": stamp(one.delivered_at),
        "redelivery": one.redelivery,
        "duration": round(one.duration, 2),
        "status": one.status,
        "status_code": one.status_code,
        "event": one.event,
        "action": one.payload.get("action"),
        "installation_id": installation["id"] if installation else None,
        "repository_id": repository["id"] if repository else None,
        "throttled_at": None,
    }


def list_deliveries(world: World, call: Call) -> Reply:
    """Deliveries of the last three days, the newest first, by cursor."""
    size = page_size(call)
    cursor = call.query.get("cursor", "").removeprefix("v1_")
    if not cursor.isdigit() and "cursor" in call.query:
        raise Refusal(400, "Invalid cursor")
    oldest = now() - timedelta(days=3)
    every = [
        each
        for each in reversed(world.state.deliveries)
        if each.delivered_at > oldest and each.status != "pending" and _passes(each, call)
    ]
    rest = [each for each in every if not cursor or each.id < int(cursor)]
    headers = {}
    if len(rest) > size:
        query = urlencode({**call.query, "cursor": f"v1_{rest[size - 1].id}"})
        headers["link"] = f'<{call.url}?{query}>; rel="next"'
    return Reply(200, [delivery(each) for each in rest[:size]], headers)


def _passes(one: HookDelivery, call: Call) -> bool:
    """Whether a delivery has the outcome that is asked for, if any is."""
    outcome = "success" if 200 <= one.status_code < 400 else "failure"
    return call.query.get("status", outcome) == outcome


def _delivery(world: World, call: Call) -> HookDelivery:
    number = call.params["delivery_id"]
    found = next((each for each in world.state.deliveries if str(each.id) == number), None)
    if found is None:
        raise not_found()
    return found


def get_delivery(world: World, call: Call) -> Reply:
    """One delivery, with what was sent and what came back."""
    one = _delivery(world, call)
    answer = {"headers": {}, "payload": one.answer}
    return Reply(
        200,
        {**delivery(one), "request": {"headers": {}, "payload": one.payload}, "response": answer},
    )


def redeliver(world: World, call: Call) -> Reply:
    """Send a delivery again, soon."""
    world.redeliver(_delivery(world, call).id)
    return Reply(202, {})


def convert_manifest(world: World, call: Call) -> Reply:
    """The App that a manifest described: its code is good once."""
    manifest = world.state.codes.pop(call.params["code"], None)
    if manifest is None:
        raise not_found()
    app = world.state.app
    app.name = manifest.get("name") or app.name
    app.permissions = dict(manifest.get("default_permissions") or app.permissions)
    app.events = list(manifest.get("default_events") or app.events)
    app.webhook = (manifest.get("hook_attributes") or {}).get("url") or app.webhook
    secrets = {"client_secret": f"{app.id:040x}", "webhook_secret": app.secret, "pem": app.key}
    return Reply(201, {**world.bodies.app(app), **secrets})


def rate_limit(_world: World, _call: Call) -> Reply:
    """Far from any limit."""
    rate = {"limit": 5000, "used": 1, "remaining": 4999, "reset": int(now().timestamp()) + 3600}
    return Reply(200, {"resources": {"core": rate, "search": rate}, "rate": rate})


ROUTES = (
    Route("POST", "/app/installations/{installation_id}/access_tokens", "app", create_token),
    Route("GET", "/app", "app", get_app),
    Route("GET", "/app/installations/{installation_id}", "app", get_installation),
    Route("GET", "/repos/{owner}/{repo}/installation", "app", repository_installation),
    Route("GET", "/app/hook/deliveries", "app", list_deliveries),
    Route("GET", "/app/hook/deliveries/{delivery_id}", "app", get_delivery),
    Route("POST", "/app/hook/deliveries/{delivery_id}/attempts", "app", redeliver),
    Route("POST", "/app-manifests/{code}/conversions", "anyone", convert_manifest),
    Route("GET", "/rate_limit", "anyone", rate_limit),
)
