//! The values of a small pickle, in an arena.

use std::sync::Arc;

use super::Error;
use super::machine::{Machine, PickleBudget, PickleBuilder};
use super::tokens::{self, PickleOpcode, PythonContainer, Tokens};

/// Largest pickle to read into a tree, in bytes.
const BYTES: usize = 1 << 20;
/// Most memo entries.
const MEMO: usize = 100_000;
/// Bytes of memory for stack and memo. Each byte of a pickle of [`BYTES`] can push a mark or a value.
const MEMORY: usize = 64 << 20;
/// Most values in a pickle; repeated ones count each time.
pub(super) const VALUES: usize = 100_000;
/// Most bytes of all texts for each byte of the pickle, repeated texts counted each time.
const TEXT: usize = 16;
/// Bytes of texts that are always allowed, since labels of several levels repeat long texts.
const LITTLE: usize = 1 << 20;
/// Deepest nesting of values.
const DEPTH: usize = 64;

/// A value. Its parts are indexes into the arena, so values can be shared and are freed without recursion.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PickleNode {
    None,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(Arc<str>),
    Bytes(Box<[u8]>),
    List(Vec<u32>),
    Tuple(Vec<u32>),
    /// Alternating keys and values.
    Dict(Vec<u32>),
    /// Module and name. Many symbols may share one text of the pickle.
    Symbol(Arc<str>, Arc<str>),
    /// A function and its arguments.
    Call(u32, u32),
    /// An object and its state.
    Build(u32, u32),
}

impl PickleNode {
    /// Its `i`-th part.
    fn child(&self, i: usize) -> Option<usize> {
        let child = match self {
            PickleNode::List(items) | PickleNode::Tuple(items) | PickleNode::Dict(items) => items.get(i),
            PickleNode::Call(first, second) | PickleNode::Build(first, second) => [first, second].get(i).copied(),
            _ => None,
        };
        child.map(|at| *at as usize)
    }

    /// Number of bytes of its own text or bytes.
    fn text_bytes(&self) -> usize {
        match self {
            PickleNode::Text(text) => text.len(),
            PickleNode::Bytes(bytes) => bytes.len(),
            PickleNode::Symbol(module, name) => module.len() + name.len(),
            _ => 0,
        }
    }
}

/// The values of a pickle. Walks through them are safe: no value contains itself, they nest at most 64 deep, and a full
/// walk visits at most 100,000 values with at most 1 MiB and 16 times the pickle's bytes of text, shared ones counted
/// each time.
#[derive(Clone, Debug, PartialEq)]
pub struct PickleTree {
    nodes: Vec<PickleNode>,
    root: u32,
}

impl PickleTree {
    /// The pickled value.
    pub fn root(&self) -> PickleValue<'_> {
        PickleValue { nodes: &self.nodes, at: self.root }
    }

    /// Visits values, children first, and refuses cycles and trees that are too costly to walk or copy.
    fn check(&self, most_text: usize) -> Result<(), Error> {
        // The result for each visited value; `None` while it is open.
        let mut known: Vec<Option<Option<Walk>>> = vec![None; self.nodes.len()];
        // For each open value: the next child, and the result so far.
        let open_at = |at: usize| (at, 0, Walk { depth: 0, values: 1, text: self.nodes[at].text_bytes() });
        known[self.root as usize] = Some(None);
        let mut open = vec![open_at(self.root as usize)];
        while let Some((at, next, walk)) = open.last_mut() {
            let Some(child) = self.nodes[*at].child(*next) else {
                if walk.depth >= DEPTH {
                    return Err(Error::Limit { what: "levels of nesting", most: DEPTH });
                }
                if walk.values > VALUES {
                    return Err(Error::Limit { what: "values", most: VALUES });
                }
                if walk.text > most_text {
                    return Err(Error::Limit { what: "bytes of texts, each as often as it occurs", most: most_text });
                }
                known[*at] = Some(Some(Walk { depth: walk.depth + 1, ..*walk }));
                open.pop();
                continue;
            };
            match known[child] {
                None => {
                    known[child] = Some(None);
                    open.push(open_at(child));
                }
                Some(None) => return Err(Error::Cycle),
                Some(Some(below)) => {
                    *next += 1;
                    walk.depth = walk.depth.max(below.depth);
                    walk.values = walk.values.saturating_add(below.values);
                    walk.text = walk.text.saturating_add(below.text);
                }
            }
        }
        Ok(())
    }
}

/// The cost of a walk through a value.
#[derive(Clone, Copy)]
struct Walk {
    /// Levels of nesting.
    depth: usize,
    /// Number of values, shared ones counted each time.
    values: usize,
    /// Bytes of texts, shared ones counted each time.
    text: usize,
}

/// One value of a [`PickleTree`].
#[derive(Clone, Copy, Debug)]
pub struct PickleValue<'a> {
    nodes: &'a [PickleNode],
    at: u32,
}

impl<'a> PickleValue<'a> {
    pub(super) fn node(self) -> &'a PickleNode {
        // All indexes come from the machine, which writes valid ones.
        self.nodes.get(self.at as usize).unwrap_or(&PickleNode::None)
    }

    pub(super) fn at(self, at: u32) -> Self {
        Self { at, ..self }
    }

    /// Whether it is `None`.
    pub fn is_none(self) -> bool {
        matches!(self.node(), PickleNode::None)
    }

    /// Its text, if it is one.
    pub fn text(self) -> Option<&'a str> {
        if let PickleNode::Text(text) = self.node() { Some(text) } else { None }
    }

    /// Its truth, if it is a bool.
    pub fn bool(self) -> Option<bool> {
        if let PickleNode::Bool(value) = self.node() { Some(*value) } else { None }
    }

    /// Its integer, if it is one of 64 bits; a bool counts as one, as in Python.
    pub fn integer(self) -> Option<i64> {
        match self.node() {
            PickleNode::Integer(value) => i64::try_from(*value).ok(),
            PickleNode::Bool(value) => Some((*value).into()),
            _ => None,
        }
    }

    /// Its float, if it is one.
    pub fn float(self) -> Option<f64> {
        if let PickleNode::Float(value) = self.node() { Some(*value) } else { None }
    }

    /// The items of a list or a tuple.
    pub fn items(self) -> Option<impl ExactSizeIterator<Item = PickleValue<'a>> + Clone> {
        let (PickleNode::List(items) | PickleNode::Tuple(items)) = self.node() else { return None };
        Some(items.iter().map(move |at| self.at(*at)))
    }

    /// Item `i` of a list or a tuple.
    pub fn item(self, i: usize) -> Option<PickleValue<'a>> {
        self.items()?.nth(i)
    }

    /// The keys and values of a dict in the order written. If a key repeats, the last one counts.
    pub fn entries(self) -> Option<impl ExactSizeIterator<Item = (PickleValue<'a>, PickleValue<'a>)>> {
        let PickleNode::Dict(entries) = self.node() else { return None };
        // A dict's entries come in pairs.
        Some(entries.chunks_exact(2).map(move |pair| (self.at(pair[0]), self.at(pair[1]))))
    }

    /// The value of a dict's text key, by linear search.
    pub fn get(self, key: &str) -> Option<PickleValue<'a>> {
        Some(self.entries()?.filter(|(other, _)| other.text() == Some(key)).last()?.1)
    }

    /// Module and name of a class or function. A `getattr` becomes `Class.method`, as in newer protocols.
    pub fn symbol(self) -> Option<(&'a str, String)> {
        match self.node() {
            PickleNode::Symbol(module, name) => Some((module, name.to_string())),
            PickleNode::Call(function, arguments) => {
                let PickleNode::Symbol(of, get) = self.at(*function).node() else { return None };
                let [class, method] = [0, 1].map(|i| self.at(*arguments).item(i));
                let PickleNode::Symbol(module, class) = class?.node() else { return None };
                let is_method = matches!(&**of, "__builtin__" | "builtins") && &**get == "getattr";
                is_method.then_some((module, format!("{class}.{}", method?.text()?)))
            }
            _ => None,
        }
    }

    /// Module and name of the called function, and the arguments. Ignores a state that is given to the result.
    pub fn call(self) -> Option<(&'a str, String, PickleValue<'a>)> {
        let called = if let PickleNode::Build(object, _) = self.node() { self.at(*object) } else { self };
        let PickleNode::Call(function, arguments) = called.node() else { return None };
        let (module, name) = self.at(*function).symbol()?;
        Some((module, name, self.at(*arguments)))
    }

    /// A short description of the value, for errors.
    pub fn describe(self) -> String {
        match self.node() {
            PickleNode::None => "None".into(),
            PickleNode::Bool(_) => "a bool".into(),
            PickleNode::Integer(_) => "an integer".into(),
            PickleNode::Float(_) => "a float".into(),
            PickleNode::Text(_) => "a text".into(),
            PickleNode::Bytes(_) => "bytes".into(),
            PickleNode::List(_) => "a list".into(),
            PickleNode::Tuple(_) => "a tuple".into(),
            PickleNode::Dict(_) => "a dict".into(),
            PickleNode::Symbol(module, name) => format!("{module}.{name}"),
            PickleNode::Call(..) | PickleNode::Build(..) => match self.call() {
                Some((module, name, _)) => format!("what {module}.{name} returns"),
                None => "what a call returns".into(),
            },
        }
    }
}

/// Reads a pickle of up to 1 MiB. Bytes after its end are ignored.
///
/// # Errors
/// A malformed or unsupported token, and its offset; an exceeded limit; a value that contains itself.
pub fn attribute(bytes: &[u8]) -> Result<PickleTree, Error> {
    if bytes.len() > BYTES {
        return Err(Error::Limit { what: "bytes", most: BYTES });
    }
    let mut machine = machine(bytes);
    while machine.step()? {}
    let [root] = machine.stack[..] else { return Err(machine.wrong("more or less than one value is left")) };
    let tree = PickleTree { nodes: machine.values.nodes, root };
    tree.check(bytes.len() * TEXT + LITTLE)?;
    Ok(tree)
}

/// A machine that builds a tree.
pub(super) fn machine(bytes: &[u8]) -> Machine<'_, Arena> {
    Machine::new(Tokens::new(bytes, 0), Arena::default(), MEMO, PickleBudget { used: 0, limit: MEMORY })
}

/// The values of a running machine; they refer to each other by index in `nodes`.
#[derive(Default)]
pub(super) struct Arena {
    nodes: Vec<PickleNode>,
    /// Offset of each value's token.
    origins: Vec<usize>,
}

impl Arena {
    /// A value, and the offset of its token.
    pub fn value(&self, at: u32) -> (PickleValue<'_>, usize) {
        (PickleValue { nodes: &self.nodes, at }, self.origins.get(at as usize).copied().unwrap_or(0))
    }

    fn push(&mut self, node: PickleNode, at: usize) -> Result<u32, Error> {
        if self.nodes.len() >= VALUES {
            return Err(Error::Limit { what: "values", most: VALUES });
        }
        self.nodes.push(node);
        self.origins.push(at);
        Ok(self.nodes.len() as u32 - 1)
    }
}

impl PickleBuilder for Arena {
    type Value = u32;

    fn leaf(&mut self, token: PickleOpcode<'_>, at: usize) -> Result<u32, Error> {
        let wrong = |what| Error::Token { at, what };
        let name = |bytes| std::str::from_utf8(bytes).map_err(|_| wrong("a name that is no text")).map(Arc::from);
        let node = match token {
            PickleOpcode::Bool(value) => PickleNode::Bool(value),
            PickleOpcode::Integer(value) => {
                PickleNode::Integer(value.ok_or(wrong("an integer of more than 128 bits"))?)
            }
            PickleOpcode::Float(value) => PickleNode::Float(value),
            PickleOpcode::Text(encoding, bytes) => {
                PickleNode::Text((*tokens::text(encoding, bytes).ok_or(wrong("a malformed text"))?).into())
            }
            PickleOpcode::Bytes(bytes) => PickleNode::Bytes(bytes.into()),
            PickleOpcode::Global(module, class) => PickleNode::Symbol(name(module)?, name(class)?),
            _ => PickleNode::None,
        };
        self.push(node, at)
    }

    fn symbol(&mut self, module: u32, name: u32, at: usize) -> Result<u32, Error> {
        let [Some(PickleNode::Text(module)), Some(PickleNode::Text(name))] =
            [module, name].map(|at| self.nodes.get(at as usize))
        else {
            return Err(Error::Token { at, what: "the names on the stack are no texts" });
        };
        self.push(PickleNode::Symbol(module.clone(), name.clone()), at)
    }

    fn make(&mut self, container: PythonContainer, items: &[u32], at: usize) -> Result<u32, Error> {
        let node = match container {
            PythonContainer::List => PickleNode::List(items.into()),
            PythonContainer::Tuple => PickleNode::Tuple(items.into()),
            PythonContainer::Dict if items.len().is_multiple_of(2) => PickleNode::Dict(items.into()),
            PythonContainer::Dict => return Err(Error::Token { at, what: "a key without a value" }),
            // No known attribute contains a set.
            PythonContainer::Set => return Err(Error::Token { at, what: "a set, which is not supported" }),
        };
        self.push(node, at)
    }

    fn extend(&mut self, into: u32, like: PythonContainer, items: &[u32], at: usize) -> Result<(), Error> {
        match (self.nodes.get_mut(into as usize), like) {
            (Some(PickleNode::List(list)), PythonContainer::List) => list.extend_from_slice(items),
            (Some(PickleNode::Dict(dict)), PythonContainer::Dict) if items.len().is_multiple_of(2) => {
                dict.extend_from_slice(items)
            }
            // Only its class knows what an object does with items.
            (Some(PickleNode::Call(..) | PickleNode::Build(..)), _) => {}
            _ => return Err(Error::Token { at, what: "the container on the stack does not take these items" }),
        }
        Ok(())
    }

    fn call(&mut self, function: u32, arguments: u32, at: usize) -> Result<u32, Error> {
        self.push(PickleNode::Call(function, arguments), at)
    }

    /// Other values may hold the object, so its index stays and its old content moves.
    fn build(&mut self, object: u32, state: u32, at: usize) -> Result<u32, Error> {
        let moved = self.push(PickleNode::None, at)?;
        let (place, last) = (object as usize, moved as usize);
        self.nodes.swap(place, last);
        self.nodes[place] = PickleNode::Build(moved, state);
        Ok(object)
    }
}
