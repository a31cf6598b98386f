//! Who may ask, and what the answers protect.

use rustix::process::Signal;
use serde_json::json;

use super::server::Server;
use crate::place::Place;

#[test]
fn the_token_in_the_address_becomes_a_cookie() {
    let place = Place::saved();
    let server = Server::start(&place, &[]);
    assert!(server.address.ip().is_loopback());
    assert_eq!(server.token.len(), 64);
    let answer = server.request("GET", &format!("/?token={}", server.token), &[], "");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    let cookie = answer.header("set-cookie").unwrap();
    assert_eq!(cookie, format!("{}; Path=/; HttpOnly; SameSite=Strict", server.cookie()));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let page = server.request("GET", "/", &[("Cookie", &server.cookie()), ("Accept-Encoding", "gzip")], "");
    assert_eq!((page.status, page.header("content-encoding")), (200, Some("gzip")));
    assert_eq!(server.end(Signal::TERM), Some(0));
}

#[test]
fn nothing_is_told_without_the_token() {
    let place = Place::saved();
    let server = Server::start(&place, &[]);
    let wrong = format!("Bearer {}x", &server.token[..63]);
    let other = server.cookie().replace("backtrail_", "backtrail_1");
    let attempts: [&[(&str, &str)]; 4] =
        [&[], &[("Authorization", &wrong)], &[("Cookie", &other)], &[("Cookie", "backtrail=x")]];
    let known = ["/", "/api/checkpoints", "/api/events", "/api/workspaces", "/assets/none.js", "/none"];
    for headers in attempts {
        for path in known {
            let answer = server.request("GET", path, headers, "");
            assert_eq!(answer.status, 401, "{path} {headers:?}");
            let text = answer.text();
            assert!(!text.contains("ws") && !text.contains(place.path("ws").to_str().unwrap()), "{text}");
        }
        let answer = server.request("POST", "/api/undo", headers, "{}");
        assert_eq!(answer.status, 401, "{headers:?}");
    }
    let answer = server.request("GET", &format!("/?token={}x", &server.token[..63]), &[], "");
    assert_eq!((answer.status, answer.header("set-cookie")), (401, None));
}

#[test]
fn other_hosts_and_other_pages_are_turned_away() {
    let place = Place::saved();
    let server = Server::start(&place, &[]);
    let (bearer, port) = (server.bearer(), server.address.port());
    let authorized = ("Authorization", bearer.as_str());
    for host in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1", "127.0.0.1:1", "localhost"] {
        let answer = server.request("GET", "/api/checkpoints", &[authorized, ("Host", host)], "");
        assert_eq!(answer.status, 403, "{host}");
    }
    for origin in ["http://evil.example", "null", "https://127.0.0.1", &format!("http://localhost:{port}")] {
        let answer = server.request("GET", "/api/checkpoints", &[authorized, ("Origin", origin)], "");
        assert_eq!(answer.status, 403, "{origin}");
    }
    let own = format!("http://127.0.0.1:{port}");
    let answer = server.request("GET", "/api/checkpoints", &[authorized, ("Origin", &own)], "");
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, None));
}

#[test]
fn a_write_needs_post_json_and_the_own_origin() {
    let place = Place::saved();
    let server = Server::start(&place, &[]);
    let (cookie, bearer) = (server.cookie(), server.bearer());
    let own = format!("http://{}", server.address);
    let (cookie, bearer) = (("Cookie", cookie.as_str()), ("Authorization", bearer.as_str()));
    let (own, json_type) = (("Origin", own.as_str()), ("Content-Type", "application/json"));
    place.write("a.txt", "changed\n");
    let save = |method: &str, headers: &[(&str, &str)]| {
        server.request(method, "/api/save", headers, r#"{"message":"by the page"}"#).status
    };
    assert_eq!(save("GET", &[cookie, own, json_type]), 404);
    assert_eq!(save("PUT", &[cookie, own, json_type]), 404);
    assert_eq!(save("POST", &[cookie, json_type]), 403, "a cookie alone");
    assert_eq!(save("POST", &[cookie, json_type, ("Origin", "http://evil.example")]), 403);
    assert_eq!(save("POST", &[cookie, own, ("Content-Type", "text/plain")]), 400);
    assert_eq!(save("POST", &[cookie, own]), 400);
    assert_eq!(place.json(["list"])["checkpoints"].as_array().unwrap().len(), 1, "nothing was written");
    assert_eq!(save("POST", &[cookie, own, json_type]), 200);
    place.write("a.txt", "again\n");
    assert_eq!(save("POST", &[bearer, json_type]), 200, "a program needs no origin");
    assert_eq!(place.json(["list"])["checkpoints"].as_array().unwrap().len(), 3);
}

#[test]
fn every_answer_has_the_headers_that_protect_the_page() {
    let place = Place::saved();
    place.write("x.svg", "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>");
    place.write("x.html", "<script>alert(1)</script>");
    place.write("x.bin", [0_u8, 1, 2]);
    place.ok(["save"]);
    let server = Server::start(&place, &[]);
    let cookie = server.cookie();
    for path in ["/", "/api/checkpoints", "/api/none", "/api/file?path=a.txt"] {
        let answer = server.request("GET", path, &[("Cookie", &cookie), ("Accept-Encoding", "gzip")], "");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    }
    let policy = server.get("/api/checkpoints").header("content-security-policy").unwrap().to_owned();
    for part in ["default-src 'none'", "script-src 'self'", "worker-src 'self'", "connect-src 'self'"] {
        assert!(policy.contains(part), "{policy}");
    }
    let file = |path: &str| server.get(&format!("/api/file?checkpoint=@&path={path}"));
    let svg = file("x.svg");
    assert_eq!(svg.header("content-type"), Some("image/svg+xml"));
    assert!(svg.header("content-security-policy").unwrap().contains("sandbox"), "scripts in a file never run");
    assert_eq!(file("x.html").header("content-type"), Some("text/plain; charset=utf-8"));
    let binary = file("x.bin");
    assert_eq!(binary.header("content-disposition"), Some("attachment"));
    assert_eq!(binary.body, [0, 1, 2]);
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let place = Place::saved();
    let server = Server::start(&place, &[]);
    let port = server.address.port().to_string();
    let run = place.run(["ui", "--no-open", "--port", &port]);
    assert_eq!((run.code, run.stderr.contains(&port)), (1, true), "{}", run.shown());
    assert_eq!(server.end(Signal::INT), Some(130));
}

#[test]
fn bad_bodies_are_refused() {
    let place = Place::saved();
    let server = Server::start(&place, &[]);
    let long = "x".repeat(2 << 20);
    assert_eq!(server.post("/api/save", &json!({ "message": long })).status, 413);
    for (path, body) in [
        ("/api/save", json!({ "unknown": 1 })),
        ("/api/save", json!([])),
        ("/api/save", json!({ "message": "x".repeat(10_000) })),
        ("/api/restore/plan", json!({})),
        ("/api/restore/plan", json!({ "checkpoint": "@", "paths": vec!["a"; 5_000] })),
        ("/api/revert/plan", json!({})),
        ("/api/revert/plan", json!({ "what": "@", "turn": 1 })),
        ("/api/apply", json!({ "plan": "x".repeat(5_000) })),
        ("/api/pin", json!({ "checkpoint": "@" })),
    ] {
        assert_eq!(server.post(path, &body).failure(), (400, "usage".to_owned()), "{path} {body:.80}");
    }
    for path in ["/api/checkpoints?limit=0", "/api/checkpoints?limit=100000", "/api/checkpoints?cursor=x"] {
        assert_eq!(server.get(path).status, 400, "{path}");
    }
    assert_eq!(server.read("/api/checkpoints")["checkpoints"].as_array().unwrap().len(), 1, "the server goes on");
}
