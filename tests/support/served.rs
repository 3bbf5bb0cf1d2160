//! `hepfs serve` as a process that ends with its test, and a client that sends just what it is given.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::support::HEPFS;

/// A server at a free port.
pub struct Served {
    process: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// The secret of its key; empty: it has none.
    pub secret: String,
    /// What it printed: lines for a shell, DuckDB, and an address.
    pub lines: Vec<String>,
}

/// The answer to a request.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    pub headers: String,
    pub body: Vec<u8>,
}

impl Answered {
    /// A header by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Served {
    /// Serves sources with further arguments.
    pub fn new(sources: &[&Path], arguments: &[&str]) -> Self {
        let mut command = Command::new(HEPFS);
        command.args(["serve", "--cache-folder", "none", "--listen", "127.0.0.1:0"]).args(arguments).args(sources);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("; Ctrl-C ends it") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
        }
        let url = line.split(" at ").nth(1).and_then(|rest| rest.split("/;").next()).unwrap().to_owned();
        let has_key = !arguments.contains(&"--open") && !arguments.contains(&"--key-file");
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().take(if has_key { 3 } else { 0 });
        let lines: Vec<String> = lines.map(Result::unwrap).collect();
        let secret = lines.last().and_then(|line| line.split("/~").nth(1)).unwrap_or_default();
        let secret = secret.trim_end_matches('/').to_owned();
        // What it logs must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::stderr()));
        // It may have another name.
        let address = format!("127.0.0.1:{}", url.rsplit(':').next().unwrap());
        Self { process, address, secret, lines }
    }

    /// Sends bytes as they are, and reads to the end.
    pub fn send(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        // The server may answer, and close, before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// Asks with the key and further headers.
    pub fn ask(&self, method: &str, path: &str, headers: &[&str]) -> Answered {
        let secret = &self.secret;
        let bearer = if secret.is_empty() { String::new() } else { format!("Authorization: Bearer {secret}\r\n") };
        self.ask_without(method, path, &[&[bearer.trim_end()], headers].concat())
    }

    /// Asks without the key.
    pub fn ask_without(&self, method: &str, path: &str, headers: &[&str]) -> Answered {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            request.push_str(&format!("Host: {}\r\n", self.address));
        }
        headers
            .iter()
            .filter(|header| !header.is_empty())
            .for_each(|header| request.push_str(&format!("{header}\r\n")));
        let answer = self.send(format!("{request}\r\n").as_bytes());
        Answered::parse(&answer)
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Asks the server to end, and waits for it.
    pub fn stop(&mut self) -> ExitStatus {
        Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "the server does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Answered {
    /// Parses a whole answer.
    pub fn parse(answer: &[u8]) -> Self {
        let end = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&answer[..answer.len().min(200)])));
        let headers = String::from_utf8(answer[..end].to_vec()).unwrap();
        let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, headers, body: answer[end + 4..].to_vec() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let end = Instant::now() + Duration::from_secs(10);
        // With a signal that it catches, it takes its key away.
        if matches!(self.process.try_wait(), Ok(None)) {
            let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        }
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
