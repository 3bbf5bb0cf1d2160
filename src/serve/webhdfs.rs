//! The protocol of WebHDFS, as far as reading goes.

use std::sync::Arc;
use std::time::SystemTime;

use bstr::{BString, ByteSlice};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, LOCATION};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::ServedTree;
use super::body::{PiecedBody, blocking};
use super::failure::RequestError;
use super::target::RequestTarget;
use super::walk::{FoundPath, Names, ServedFile};
use crate::fs::{EntryKind, NodeRef};
use crate::source::Interrupt;

/// Most names in an answer.
const MOST_NAMES: usize = 100_000;

/// Bytes of a block: a reader splits files there.
const BLOCK: u64 = 64 << 20;

/// Most blocks in an answer.
const MOST_BLOCKS: u64 = 100_000;

/// Answers a request, whose path is that below `/webhdfs/v1`.
pub async fn answer(
    site: &Arc<ServedTree>,
    request: &Parts,
    target: &RequestTarget,
) -> Result<Response<PiecedBody>, RequestError> {
    let path: &[Vec<u8>] = match target.path.split_last() {
        // A slash behind a name means nothing here.
        Some((last, above)) if last.is_empty() => above,
        _ => &target.path,
    };
    let operation = target.parameter("op").unwrap_or_default().to_ascii_uppercase();
    match operation.as_str() {
        "GETHOMEDIRECTORY" => Ok(said(&json!({"Path": "/"}))),
        "GETFILESTATUS" => {
            let status = match found(site, path).await? {
                Ok(file) => of_file(&file, ""),
                Err((node, _)) => of_directory(&node, ""),
            };
            Ok(said(&json!({"FileStatus": status})))
        }
        "LISTSTATUS" => {
            let list = match found(site, path).await? {
                Ok(file) => vec![of_file(&file, "")],
                Err((node, path)) => {
                    let names = site.names.clone();
                    blocking(&site.room.listing, move |interrupt| list(&names, &node, &path, interrupt)).await??
                }
            };
            Ok(said(&json!({"FileStatuses": {"FileStatus": list}})))
        }
        "GETFILEBLOCKLOCATIONS" => {
            let file = found(site, path).await?.map_err(|_| RequestError::NotFound)?;
            Ok(said(&json!({"BlockLocations": {"BlockLocation": blocks(&file, host(request))}})))
        }
        "OPEN" => open(site, request, target, path).await,
        _ => Err(RequestError::NotImplemented),
    }
}

/// The file, or the directory and its path.
async fn found(
    site: &Arc<ServedTree>,
    path: &[Vec<u8>],
) -> Result<Result<Arc<ServedFile>, (NodeRef, BString)>, RequestError> {
    Ok(match site.find(path).await? {
        FoundPath::File(file) => Ok(file),
        FoundPath::Unmeasured(file) => Ok(site.measured(file).await?),
        FoundPath::Directory(node, path) => Err((node, path)),
    })
}

fn host(request: &Parts) -> &str {
    request.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

async fn open(
    site: &Arc<ServedTree>,
    request: &Parts,
    target: &RequestTarget,
    path: &[Vec<u8>],
) -> Result<Response<PiecedBody>, RequestError> {
    let file = found(site, path).await?.map_err(|_| RequestError::NotFound)?;
    let mut response = Response::new(PiecedBody::default());
    if target.bytes("data").is_none() {
        // Clients expect a name node to lead them to a data node. This server is both.
        let scheme = if site.is_tls { "https" } else { "http" };
        let place = format!("{scheme}://{}{}&data=1", host(request), request.uri);
        let place = HeaderValue::try_from(place).map_err(|_| RequestError::BadRequest("a strange name of a host"))?;
        response.headers_mut().insert(LOCATION, place);
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        return Ok(response);
    }
    let (offset, length) = (number(target, "offset", 0)?, number(target, "length", u64::MAX)?);
    if offset > file.size {
        return Err(RequestError::Range(file.size));
    }
    let end = offset.saturating_add(length).min(file.size);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    *response.body_mut() = PiecedBody::of_file(&site.room, &file, offset..end).await?;
    Ok(response)
}

fn number(target: &RequestTarget, name: &str, otherwise: u64) -> Result<u64, RequestError> {
    let text = target.parameter(name);
    let number = text.map_or(Ok(otherwise), |text| text.parse());
    number.map_err(|_| RequestError::BadRequest("offset and length are numbers"))
}

/// The answer to a request that fails.
pub fn failed(failure: &RequestError) -> Response<PiecedBody> {
    let class = failure.exception();
    let name = class.rsplit('.').next().unwrap_or(class);
    let mut response = said(&json!({
        "RemoteException": {"exception": name, "javaClassName": class, "message": failure.to_string()}
    }));
    *response.status_mut() = failure.status();
    response
}

/// JSON without a type of content: the client that Spark brings fails on any.
fn said(value: &Value) -> Response<PiecedBody> {
    Response::new(PiecedBody::from(value.to_string().into_bytes()))
}

fn list(names: &Names, node: &NodeRef, path: &BString, interrupt: &Interrupt) -> Result<Vec<Value>, RequestError> {
    let mut list = Vec::new();
    for entry in names.listed(node, interrupt)? {
        if list.len() == MOST_NAMES {
            return Err(RequestError::BadRequest("the directory has too many names for one list"));
        }
        let name = entry.name.to_str_lossy();
        let Ok(child) = node.lookup(&entry.name, interrupt) else { continue };
        match entry.kind {
            EntryKind::Directory => list.push(of_directory(&child, &name)),
            EntryKind::File => {
                let mut at = path.clone();
                at.extend(if path.is_empty() { &b""[..] } else { b"/" });
                at.extend(&*entry.name);
                let known = names.known(at.as_bstr(), &child, interrupt);
                list.extend(known.map(|(size, _)| status("FILE", &name, size, child.attributes().mtime)));
            }
            // A walk along links may have no end.
            EntryKind::Symlink | EntryKind::LiveFile => {}
        }
        interrupt.check().map_err(|_| RequestError::Later)?;
    }
    Ok(list)
}

fn of_file(file: &ServedFile, name: &str) -> Value {
    status("FILE", name, file.size, file.modified)
}

fn of_directory(node: &NodeRef, name: &str) -> Value {
    status("DIRECTORY", name, 0, node.attributes().mtime)
}

fn status(kind: &str, name: &str, length: u64, modified: SystemTime) -> Value {
    let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let modified = u64::try_from(since.as_millis()).unwrap_or_default();
    let is_file = kind == "FILE";
    json!({
        "accessTime": 0,
        "blockSize": if is_file { BLOCK } else { 0 },
        "childrenNum": 0,
        "fileId": 0,
        "group": "hepfs",
        "length": length,
        "modificationTime": modified,
        "owner": "hepfs",
        "pathSuffix": name,
        "permission": if is_file { "444" } else { "555" },
        "replication": u64::from(is_file),
        "storagePolicy": 0,
        "type": kind,
    })
}

fn blocks(file: &ServedFile, host: &str) -> Vec<Value> {
    let name = super::without_port(host);
    let length = file.size.div_ceil(MOST_BLOCKS).max(BLOCK);
    let blocks = (0..file.size.div_ceil(length)).map(|number| number * length).map(|offset| {
        json!({
            "cachedHosts": [],
            "corrupt": false,
            "hosts": [name],
            "length": length.min(file.size - offset),
            "names": [host],
            "offset": offset,
            "storageTypes": ["DISK"],
            "topologyPaths": [format!("/default-rack/{host}")],
        })
    });
    blocks.collect()
}
