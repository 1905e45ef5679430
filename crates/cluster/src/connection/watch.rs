//! A watch: one JSON document per line until the server ends it.

use std::time::Duration;

use bytes::BytesMut;
use http::StatusCode;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::status::{self, Subject};
use crate::Error;

/// The longest line that is read, in bytes: an object of 1.5 MiB (etcd's bound) with room for its escapes.
const LINE_MAX: usize = 8 * 1024 * 1024;

/// One change that a watch tells of.
#[derive(Debug)]
pub(crate) enum WatchEvent {
    /// An object was made or changed; the raw object.
    Applied(Box<RawValue>),
    /// An object is gone; its last state.
    Deleted(Box<RawValue>),
    /// Nothing else changed up to the version of this object, which holds nothing else; shows that the watch lives.
    Bookmark(Box<RawValue>),
}

/// An open watch.
pub(crate) struct WatchStream {
    body: Body,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    idle: Duration,
    subject: Subject,
}

#[derive(Deserialize)]
struct Line {
    r#type: String,
    object: Box<RawValue>,
}

#[derive(Deserialize)]
struct Code {
    code: Option<u16>,
}

impl WatchStream {
    pub(super) fn new(body: Body, idle: Duration, subject: Subject) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
            searched: 0,
            idle,
            subject,
        }
    }

    /// The next change; none when the server ended the watch, or it broke or fell silent: then list and watch again.
    pub(crate) async fn next(&mut self) -> Result<Option<WatchEvent>, Error> {
        loop {
            if let Some(line) = self.take_line() {
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return self.event(&line).map(Some);
            }
            if self.buffer.len() > LINE_MAX {
                let reason = format!("a line of more than {LINE_MAX} bytes");
                return Err(Error::Decode {
                    doing: self.subject.doing.clone(),
                    reason,
                });
            }
            // A broken connection ends the watch like the server does; what was missed shows in the next list.
            match timeout(self.idle, self.body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Ok(Some(Err(_)) | None) | Err(_) => return Ok(None),
            }
        }
    }

    fn take_line(&mut self) -> Option<BytesMut> {
        let end = self
            .buffer
            .iter()
            .skip(self.searched)
            .position(|byte| *byte == b'\n');
        match end {
            Some(end) => {
                let line = self.buffer.split_to(self.searched + end + 1);
                self.searched = 0;
                Some(line)
            }
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }

    fn event(&self, line: &[u8]) -> Result<WatchEvent, Error> {
        let line: Line =
            serde_json::from_slice(line).map_err(|error| Error::decode(&self.subject.doing, &error))?;
        match line.r#type.as_str() {
            "ADDED" | "MODIFIED" => Ok(WatchEvent::Applied(line.object)),
            "DELETED" => Ok(WatchEvent::Deleted(line.object)),
            "BOOKMARK" => Ok(WatchEvent::Bookmark(line.object)),
            "ERROR" => {
                let body = line.object.get().as_bytes();
                let code = serde_json::from_slice::<Code>(body)
                    .ok()
                    .and_then(|status| status.code);
                let code = code.and_then(|code| StatusCode::from_u16(code).ok());
                Err(status::error(
                    &self.subject,
                    code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                    None,
                    body,
                ))
            }
            other => {
                let reason = format!("a watch event of type {other:?}");
                Err(Error::Decode {
                    doing: self.subject.doing.clone(),
                    reason,
                })
            }
        }
    }
}
