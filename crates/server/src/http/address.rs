//! Parses the address to listen at. Only addresses of this machine are accepted.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Parses `127.0.0.1:7420`, `localhost:7420`, `[::1]:7420` or just a port. The error is the reason for the refusal.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let local = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(local(port));
    }
    let address: SocketAddr =
        text.parse().map_err(|_| "it is not an address; write it like 127.0.0.1:7420, or only a port".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("it can be reached from other machines; only loopback addresses, such as 127.0.0.1, are allowed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_listened_to() {
        let text = |address: &str| parse_address(address).map(|address| address.to_string());
        assert_eq!(text("127.0.0.1:7420").as_deref(), Ok("127.0.0.1:7420"));
        assert_eq!(text("localhost:0").as_deref(), Ok("127.0.0.1:0"));
        assert_eq!(text("7420").as_deref(), Ok("127.0.0.1:7420"));
        assert_eq!(text("[::1]:7420").as_deref(), Ok("[::1]:7420"));
        assert_eq!(text("127.8.8.8:1").as_deref(), Ok("127.8.8.8:1"));
        for bad in ["0.0.0.0:7420", "[::]:7420", "192.168.1.2:7420", "8.8.8.8:1", "[::ffff:8.8.8.8]:1"] {
            assert!(text(bad).is_err_and(|why| why.contains("other machines")), "{bad:?}");
        }
        for bad in ["", "localhost", "example.com:80", "127.0.0.1", "70000", "127.0.0.1:70000", ":7420", "-1"] {
            assert!(text(bad).is_err_and(|why| why.contains("not an address")), "{bad:?}");
        }
    }
}
