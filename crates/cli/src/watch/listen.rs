//! Answers to Prometheus, one at a time and without waiting for long.

use crate::Failure;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// How long a reader may take.
const PATIENCE: Duration = Duration::from_millis(200);

/// Answers between two looks at the events, at most.
const MOST: usize = 8;

/// An address that answers.
pub(super) struct Listener(TcpListener);

impl Listener {
    pub(super) fn open(address: SocketAddr) -> Result<Listener, Failure> {
        let failed = |e: std::io::Error| Failure::from(format!("--listen {address}: {e}; give another port"));
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Listener(listener))
    }

    /// Answers who asks now.
    pub(super) fn answer(&self, text: impl Fn() -> String) {
        for _ in 0..MOST {
            let Ok((stream, _)) = self.0.accept() else { return };
            // A client that hangs up misses its own answer, and nothing else.
            _ = reply(stream, &text);
        }
    }
}

fn reply(mut stream: TcpStream, text: &impl Fn() -> String) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = [0; 1024];
    let length = stream.read(&mut request)?;
    let (status, kind, body) = match request[..length].strip_prefix(b"GET ") {
        Some(rest) if rest.starts_with(b"/metrics ") || rest.starts_with(b"/metrics?") => {
            ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", text())
        }
        Some(_) => ("404 Not Found", "text/plain", "there is /metrics\n".to_owned()),
        None => ("405 Method Not Allowed", "text/plain", "GET /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_metrics_gets_them() {
        let listener = Listener::open("127.0.0.1:0".parse().expect("an address")).expect("free");
        let address = listener.0.local_addr().expect("bound");
        for (request, want) in [("GET /metrics HTTP/1.1", "200"), ("GET / HTTP/1.1", "404"), ("POST /", "405")] {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(format!("{request}\r\n\r\n").as_bytes()).expect("written");
            std::thread::sleep(Duration::from_millis(20));
            listener.answer(|| "refault_x 1\n# EOF\n".to_owned());
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            assert!(answer.starts_with(&format!("HTTP/1.1 {want}")), "{answer}");
            assert_eq!(answer.contains("refault_x"), want == "200");
        }
    }
}
