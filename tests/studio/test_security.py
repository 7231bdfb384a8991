"""Who may ask: hosts, origins, other sites, tokens, sizes; and what every answer carries."""

import hmac

import pytest
from fastapi.testclient import TestClient

from anyfill.studio import security
from anyfill.studio.security import COOKIE, MAX_JSON, Access, Guard
from anyfill.studio.server import address, guarded

HOST = "http://127.0.0.1:8377"
SCORE = "/api/text/score"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "localhost.evil.example:8377", "[::1", "a:b:c", ""])
def test_a_foreign_host_is_turned_away(visitor, host):
    assert visitor.get("/api/models", headers={"Host": host}).status_code == 403
    assert visitor.get("/", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8377", "localhost:8377", "[::1]:8377", "LOCALHOST:8377"])
def test_names_of_this_machine_are_let_in(visitor, host):
    assert visitor.get("/api/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_a_foreign_origin_is_turned_away(visitor, origin):
    answer = visitor.post(SCORE, {"text": ""}, headers={"Origin": origin})
    assert answer.status_code == 403


def test_the_own_origin_is_let_in_and_nothing_is_shared_with_others(visitor):
    answer = visitor.post(SCORE, {"text": ""}, headers={"Origin": HOST, "Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_may_link_here_and_no_more(visitor, site):
    assert visitor.get("/", headers={"Sec-Fetch-Site": site}).status_code == 200
    assert visitor.get("/api/models", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert visitor.post(SCORE, {"text": ""}, headers={"Sec-Fetch-Site": site}).status_code == 403


@pytest.mark.parametrize("path", ["/", "/api/models", "/api/openapi.json", "/nothing", "/api/jobs/none"])
def test_every_answer_says_that_nothing_foreign_and_nothing_inline_is_run(visitor, path):
    policy = visitor.get(path).headers["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize(
    "path", ["/../pyproject.toml", "/%2e%2e/server.py", "/js/..%2f..%2fserver.py", "/....//server.py", "/%00", "/js"]
)
def test_no_path_leads_out_of_the_pages(visitor, path):
    answer = visitor.get(path)
    assert answer.status_code == 404
    assert "import" not in answer.text


def test_a_body_over_the_limit_is_refused_whether_or_not_it_says_so(visitor):
    body = b'{"text": "' + b"a" * MAX_JSON + b'"}'
    json = {"Content-Type": "application/json"}
    assert visitor.client.post(SCORE, content=body, headers=json).status_code == 413

    def parts():
        for start in range(0, len(body), 2**16):
            yield body[start : start + 2**16]

    answer = visitor.client.post(SCORE, content=parts(), headers=json)
    assert answer.status_code == 413
    assert answer.json()["detail"] == "at most 2 MiB can be sent here"


def test_other_machines_need_a_token():
    with pytest.raises(ValueError, match="--token"):
        Access("0.0.0.0", 8377)
    with pytest.raises(ValueError, match="8 characters"):
        Access("0.0.0.0", 8377, "short")


@pytest.fixture
def far(app, visitor):
    """Somebody on another machine; the application runs already."""
    return TestClient(guarded(app, Access("0.0.0.0", 8377, "open sesame")), base_url="http://box.example:8377")


def test_without_the_token_nothing_is_said(far):
    for headers in ({}, {"Authorization": "Bearer open"}, {"Cookie": f"{COOKIE}=wrong"}, {"Authorization": "Bearer é"}):
        assert far.get("/api/models", headers={k: v.encode() for k, v in headers.items()}).status_code == 401
    assert far.get("/?token=wrong").status_code == 401


def test_the_token_in_the_address_becomes_a_cookie_that_scripts_cannot_read(far):
    answer = far.get("/?token=open%20sesame", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert far.get("/api/models").status_code == 200


@pytest.mark.parametrize("token", ["a long secret", "a&b=c#d+e%20f;g", "ein schönes Wort", "долгий секрет"])
def test_the_address_that_is_printed_opens_the_studio_whatever_is_in_the_token(app, visitor, token):
    """It used to be printed as it is: a space, &, # or + was lost on the way, and letters beyond Latin failed."""
    access = Access("0.0.0.0", 8377, token)
    client = TestClient(guarded(app, access), base_url="http://box.example:8377")
    printed = address(access)
    assert " " not in printed
    assert printed.isascii()
    assert client.get(printed.removeprefix("http://localhost:8377")).status_code == 200
    assert client.get("/api/models").status_code == 200


def test_the_token_as_bearer(far):
    assert far.get("/api/models", headers={"Authorization": "Bearer open sesame"}).status_code == 200


def test_tokens_are_compared_in_constant_time(monkeypatch):
    seen, real = [], hmac.compare_digest

    def compare(one, other):
        seen.append((one, other))
        return real(one, other)

    monkeypatch.setattr(security.hmac, "compare_digest", compare)
    access = Access("0.0.0.0", 1, "open sesame")
    assert not access.knows("open")
    assert access.knows("open sesame")
    assert seen == [(b"open", b"open sesame"), (b"open sesame", b"open sesame")]


def test_websockets_are_not_answered():
    async def application(scope, receive, send):
        raise RuntimeError("reached")

    import asyncio

    asyncio.run(Guard(application, Access())({"type": "websocket"}, None, None))
