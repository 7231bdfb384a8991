"""Who may ask the studio, and for how much.

The studio listens on this machine only. But any page in any browser tab can send requests to 127.0.0.1, so:

    Host     must be a name of this machine (a name that an attacker's DNS points here is another one: DNS rebinding)
    Origin   must be the studio itself, and the browser must not say that another site asks (CSRF)
    token    for anything but this machine; compared in constant time; sent once in the address, then kept in a cookie
             that scripts cannot read and other sites do not send, or as ``Authorization: Bearer``
    size     of a body is counted while it comes in, whatever its header says
    CSP      a page may load scripts, styles, pictures and data from here, and nothing else from anywhere

There is no CORS: no other page ever reads an answer.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, quote, unquote, urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anyfill.checks import refuse

COOKIE = "anyfill_token"
MAX_JSON = 2 * 2**20
"""Bytes of a body that is no upload."""
MAX_UPLOAD = 64 * 2**20
"""Bytes of an upload."""
UPLOADS = "/upload"
"""Routes that take files end so."""
LOCAL = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "font-src 'self'; media-src 'self' blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True, slots=True)
class Access:
    """From where the studio may be asked.

    Attributes:
        host: the address it listens on.
        port: and the port.
        token: what a visitor must know; needed unless the address is of this machine.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None

    def __post_init__(self) -> None:
        if not self.is_local and not self.token:
            expected = "a --token with it, for others on the network could use the studio"
            raise refuse(f"--host {self.host}", expected=expected, got="none")
        if self.token is not None and len(self.token) < 8:
            raise refuse("--token", expected="at least 8 characters", got=len(self.token))

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOCAL

    def allows_host(self, host: str) -> bool:
        """Whether a Host header names the studio; with a token any name does, for the token is what protects it."""
        if not self.is_local:
            return bool(host)
        name, port = _split(host)
        return name in LOCAL and (not self.port or port == self.port)

    def knows(self, token: str | None) -> bool:
        """Whether this is the token; the time that it takes says nothing about where it differs."""
        if self.token is None:
            return True
        return hmac.compare_digest((token or "").encode(), self.token.encode())


class Guard:
    """Stands before the application and turns away what must not come in; puts the headers on what goes out."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An ASGI application."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no websockets here
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(one for one in more if one[0] not in own)]
                if scope["path"].startswith("/api") and b"cache-control" not in own:
                    message["headers"].append((b"cache-control", b"no-store"))
            await send(message)

        headers = Headers(scope=scope)
        refused = self._refused(scope, headers)
        if refused is not None:
            await refused(scope, receive, send_with_headers)
            return
        limit = MAX_UPLOAD if scope["path"].endswith(UPLOADS) else MAX_JSON
        if _stated(headers) > limit:
            await _no(413, _too_large(limit))(scope, receive, send_with_headers)
            return
        await self.app(scope, _Counted(receive, limit), send_with_headers)

    def _refused(self, scope: Scope, headers: Headers) -> JSONResponse | RedirectResponse | None:
        """The answer to whoever may not come in; None for those who may."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.access.allows_host(host):
            return _no(403, "this studio answers to its own address only (Host header)")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return _no(403, "this studio answers to its own pages only (Origin header)")
        site = headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and (scope["path"].startswith("/api") or scope["method"] != "GET"):
            return _no(403, "this studio answers to its own pages only (another site asks)")
        return self._without_token(scope, headers)

    def _without_token(self, scope: Scope, headers: Headers) -> JSONResponse | RedirectResponse | None:
        if self.access.token is None:
            return None
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.access.knows(bearer):
            return None
        if self.access.knows(_cookie(headers)):
            return None
        said = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and self.access.knows(said):
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(COOKIE, quote(said, safe=""), httponly=True, samesite="strict", path="/")
            return answer
        return _no(401, "a token is needed: open the address that anyfill studio printed")


class _Counted:
    """What comes in, up to a limit; beyond it the application, which reads it, answers 413."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self.receive, self.limit, self.left = receive, limit, limit

    async def __call__(self) -> Message:
        message = await self.receive()
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            raise HTTPException(413, _too_large(self.limit))
        return message


def _no(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"detail": sentence}, status_code=status)


def _too_large(limit: int) -> str:
    return f"at most {limit // 2**20} MiB can be sent here"


def _stated(headers: Mapping[str, str]) -> int:
    """What the header says of the size of a body; 0 where it says nothing that can be read."""
    said = headers.get("content-length", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else 0


def _cookie(headers: Mapping[str, str]) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else unquote(found.value)


def _split(host: str) -> tuple[str, int]:
    """Name and port of a Host header; port 80 where none is said, -1 where it cannot be read."""
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "").lower(), 80 if parts.port is None else parts.port
    except ValueError:
        return "", -1
