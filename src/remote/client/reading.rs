//! Asks again where an answer is lost on its way.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt, try_unfold};
use tokio::time::{Instant, sleep, timeout_at};

use super::failure::RemoteFailure;
use super::line::{AnswerBody, ObjectFacts, RequestCounts};
use super::object::AnyObject;
use crate::remote::RangeClient;
use crate::source;

/// The wait after a first failure; it doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Failures in a row after which an opening gives up: a wrong name is told before the deadline.
pub(super) const FEW: u32 = 4;

/// When to ask again, and when to give up.
pub(super) struct RetryPatience {
    deadline: Duration,
    most: u32,
    /// When the last byte came, or the wait for it began.
    last: Instant,
    failures: u32,
}

impl RetryPatience {
    /// Allows this number of failures in a row, and this time without a byte.
    pub fn new(deadline: Duration, most: u32) -> Self {
        Self { deadline, most, last: Instant::now(), failures: 0 }
    }

    /// Begins to wait for bytes: the time before was not the server's.
    fn begin(&mut self) {
        (self.last, self.failures) = (Instant::now(), 0);
    }

    /// Waits for a step of an answer. After half of the deadline without a byte, another connection is worth a try.
    async fn step<T>(&self, host: &str, step: impl Future<Output = T>) -> Result<T, RemoteFailure> {
        let until = (Instant::now() + self.deadline / 2).min(self.last + self.deadline);
        timeout_at(until, step)
            .await
            .map_err(|_| RemoteFailure::Silent { host: host.to_owned(), time: self.last.elapsed() })
    }

    /// Waits before the same is asked again.
    ///
    /// # Errors
    /// The failure, where it is final, or the wait would be too long.
    async fn wait(&mut self, failure: RemoteFailure) -> Result<(), RemoteFailure> {
        self.failures += 1;
        let asked = if let RemoteFailure::Status { retry_after, .. } = &failure { *retry_after } else { None };
        let longest = (FIRST_WAIT * (1 << self.failures.min(7)) / 2).min(LONGEST_WAIT);
        // Clients that failed together shall not return together.
        let part = RandomState::new().hash_one(self.failures) % 512;
        let wait = (longest / 2 + longest * part as u32 / 1024).max(asked.unwrap_or_default());
        // Compared as a time passed: a store may ask for any number of seconds.
        let is_too_long = self.last.elapsed().saturating_add(wait) >= self.deadline;
        if !failure.may_pass() || self.failures >= self.most || is_too_long {
            return Err(failure);
        }
        sleep(wait).await;
        Ok(())
    }

    /// Asks until there is an answer, or a failure that is final.
    pub async fn ask<T, F: Future<Output = Result<T, RemoteFailure>>>(
        mut self,
        host: &str,
        requests: &RequestCounts,
        mut ask: impl FnMut() -> F,
    ) -> Result<T, RemoteFailure> {
        loop {
            match self.step(host, ask()).await.flatten() {
                Ok(answer) => return Ok(answer),
                Err(failure) => self.wait(failure).await?,
            }
            requests.again.add(1);
        }
    }
}

/// One version of an object, asked for by ranges.
#[derive(Clone)]
pub(super) struct ObjectClient {
    pub address: PathBuf,
    pub object: AnyObject,
    pub facts: ObjectFacts,
    pub deadline: Duration,
    pub requests: Arc<RequestCounts>,
    /// Whom to tell that the store has another version.
    pub forget: Weak<dyn Forget>,
}

/// Forgets an answer about the version at an address.
pub(super) trait Forget: Send + Sync {
    /// Forgets that this version is there.
    fn forget(&self, version: &ObjectClient);
}

impl std::fmt::Debug for ObjectClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectClient")
            .field("address", &self.address)
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl RangeClient for ObjectClient {
    fn get(&self, range: Range<u64>) -> BoxStream<'static, Result<Bytes, source::Error>> {
        let patience = RetryPatience::new(self.deadline, u32::MAX);
        let reading = Reading { version: self.clone(), left: range, body: None, patience };
        let stream =
            try_unfold(reading, |mut reading| async move { Ok(reading.next().await?.map(|bytes| (bytes, reading))) });
        let version = self.clone();
        let stream = stream.map(move |bytes| {
            bytes.map_err(|failure: RemoteFailure| {
                if let (RemoteFailure::Changed { .. }, Some(store)) = (&failure, version.forget.upgrade()) {
                    store.forget(&version);
                }
                failure.at(&version.address)
            })
        });
        stream.boxed()
    }
}

/// A range on its way.
struct Reading {
    version: ObjectClient,
    left: Range<u64>,
    body: Option<AnswerBody>,
    patience: RetryPatience,
}

impl Reading {
    /// The next bytes; `None`: all have come.
    async fn next(&mut self) -> Result<Option<Bytes>, RemoteFailure> {
        self.patience.begin();
        while !self.left.is_empty() {
            match self.step().await {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => {
                    self.left.start += bytes.len() as u64;
                    return Ok(Some(bytes));
                }
                Err(failure) => {
                    self.body = None;
                    self.patience.wait(failure).await?;
                    self.version.requests.again.add(1);
                }
            }
        }
        Ok(None)
    }

    /// Asks for what is left, or waits for the next bytes of the answer.
    async fn step(&mut self) -> Result<Bytes, RemoteFailure> {
        let host = self.version.object.host();
        let Some(body) = &mut self.body else {
            let asked = self.version.object.get(&self.left, &self.version.facts);
            self.body = Some(self.patience.step(&host, asked).await??);
            return Ok(Bytes::new());
        };
        match self.patience.step(&host, body.next()).await? {
            None => Err(RemoteFailure::Network { host, reason: "the answer ended early".to_owned() }),
            Some(Ok(bytes)) if bytes.len() as u64 > self.left.end - self.left.start => {
                Err(RemoteFailure::answer(&host, "sends more bytes than were asked for"))
            }
            Some(answer) => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, seconds: Option<u64>) -> RemoteFailure {
        let retry_after = seconds.map(Duration::from_secs);
        RemoteFailure::Status { host: "h".into(), status, code: None, hint: None, retry_after, region: None }
    }

    #[test]
    fn patience_waits_longer_each_time_and_ends() {
        let runtime = crate::remote::runtime::handle().unwrap();
        runtime.block_on(async {
            let mut patience = RetryPatience::new(Duration::from_secs(60), 4);
            for (least, most) in [(50, 100), (100, 200), (200, 400)] {
                let begun = Instant::now();
                patience.wait(status(503, None)).await.unwrap();
                let took = begun.elapsed().as_millis();
                assert!((least..most + 80).contains(&took), "{took} ms of {least} to {most}");
            }
            assert_eq!(patience.wait(status(503, None)).await, Err(status(503, None)));
            patience.begin();
            // Longer than the deadline, and than any time.
            for seconds in [61, u64::MAX] {
                assert!(patience.wait(status(503, Some(seconds))).await.is_err());
            }
            assert!(patience.wait(status(403, None)).await.is_err());
        });
    }
}
