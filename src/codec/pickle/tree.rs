//! The values of a small pickle, in an arena.

use std::sync::Arc;

use super::Error;

/// Most values in a pickle, those that occur more than once counted each time.
pub(super) const VALUES: usize = 100_000;
/// Deepest nesting of values.
const DEPTH: usize = 64;

/// A value; what it holds are places in the arena, so values can be shared, and are freed without recursion.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    None,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(Arc<str>),
    Bytes(Box<[u8]>),
    List(Vec<u32>),
    Tuple(Vec<u32>),
    /// Keys and values in turn.
    Dict(Vec<u32>),
    /// Its names can be texts of the pickle, in any number of symbols.
    Symbol(Arc<str>, Arc<str>),
    Call([u32; 2]),
    Build([u32; 2]),
}

impl Node {
    fn children(&self) -> &[u32] {
        match self {
            Node::List(items) | Node::Tuple(items) | Node::Dict(items) => items,
            Node::Call(parts) | Node::Build(parts) => parts,
            _ => &[],
        }
    }
}

/// The values of a pickle. They may be walked without care: no value contains itself, they nest at most 64 deep, and a
/// walk through all of them meets at most 100,000, shared ones counted each time.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    nodes: Vec<Node>,
    root: u32,
}

impl Tree {
    /// Takes the arena of a machine that has stopped.
    pub(super) fn new(nodes: Vec<Node>, root: u32) -> Result<Self, Error> {
        let tree = Self { nodes, root };
        tree.check()?;
        Ok(tree)
    }

    /// The value that was pickled.
    pub fn root(&self) -> Value<'_> {
        Value { nodes: &self.nodes, at: self.root }
    }

    /// Visits values, children first, and refuses cycles and what a walk would take too long for.
    fn check(&self) -> Result<(), Error> {
        // Of each value met: how deep it nests and how many values it holds; zeros while it is open.
        let mut known: Vec<Option<(usize, usize)>> = vec![None; self.nodes.len()];
        let mut open = vec![(self.root as usize, 0)];
        while let Some((at, next)) = open.last_mut() {
            let children = self.nodes[*at].children();
            if *next == 0 {
                known[*at] = Some((0, 0));
            }
            if let Some(child) = children.get(*next) {
                *next += 1;
                match known[*child as usize] {
                    None => open.push((*child as usize, 0)),
                    Some((0, _)) => return Err(Error::Cycle),
                    Some(_) => {}
                }
                continue;
            }
            let parts = children.iter().filter_map(|child| known[*child as usize]);
            let (depth, count) = parts.fold((0, 1usize), |(depth, count), part| {
                (depth.max(part.0), count.saturating_add(part.1))
            });
            if depth >= DEPTH {
                return Err(Error::Limit { what: "levels of nesting", most: DEPTH });
            }
            if count > VALUES {
                return Err(Error::Limit { what: "values", most: VALUES });
            }
            known[*at] = Some((depth + 1, count));
            open.pop();
        }
        Ok(())
    }
}

/// One value of a [`Tree`].
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    nodes: &'a [Node],
    at: u32,
}

/// What a value is.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of up to 128 bits.
    Integer(i128),
    /// A float.
    Float(f64),
    /// `str`, or a string of Python 2.
    Text(&'a str),
    /// `bytes`.
    Bytes(&'a [u8]),
    /// A list; see [`Value::items`].
    List,
    /// A tuple; see [`Value::items`].
    Tuple,
    /// A dict; see [`Value::entries`].
    Dict,
    /// A class or function, by its names.
    Symbol {
        /// The module it would be imported from.
        module: &'a str,
        /// Its name there.
        name: &'a str,
    },
    /// A call that Python would make.
    Call {
        /// Of this, mostly a symbol.
        function: Value<'a>,
        /// With these, mostly a tuple.
        arguments: Value<'a>,
    },
    /// An object that Python would give a state.
    Build {
        /// The object.
        object: Value<'a>,
        /// Its state.
        state: Value<'a>,
    },
}

impl<'a> Value<'a> {
    /// A value in the arena of a machine at work.
    pub(super) fn within(nodes: &'a [Node], at: u32) -> Self {
        Self { nodes, at }
    }

    fn node(self) -> &'a Node {
        // Places come from the machine, which writes no others.
        self.nodes.get(self.at as usize).unwrap_or(&Node::None)
    }

    fn at(self, at: u32) -> Self {
        Self { at, ..self }
    }

    /// What the value is.
    pub fn view(self) -> View<'a> {
        match self.node() {
            Node::None => View::None,
            Node::Bool(value) => View::Bool(*value),
            Node::Integer(value) => View::Integer(*value),
            Node::Float(value) => View::Float(*value),
            Node::Text(text) => View::Text(text),
            Node::Bytes(bytes) => View::Bytes(bytes),
            Node::List(_) => View::List,
            Node::Tuple(_) => View::Tuple,
            Node::Dict(_) => View::Dict,
            Node::Symbol(module, name) => View::Symbol { module, name },
            Node::Call([function, arguments]) => {
                View::Call { function: self.at(*function), arguments: self.at(*arguments) }
            }
            Node::Build([object, state]) => View::Build { object: self.at(*object), state: self.at(*state) },
        }
    }

    /// Whether it is `None`.
    pub fn is_none(self) -> bool {
        matches!(self.node(), Node::None)
    }

    /// A text.
    pub fn text(self) -> Option<&'a str> {
        if let Node::Text(text) = self.node() { Some(text) } else { None }
    }

    /// An integer of 64 bits; a bool is one too, as in Python.
    pub fn integer(self) -> Option<i64> {
        match self.node() {
            Node::Integer(value) => i64::try_from(*value).ok(),
            Node::Bool(value) => Some((*value).into()),
            _ => None,
        }
    }

    /// The items of a list or a tuple.
    pub fn items(self) -> Option<impl ExactSizeIterator<Item = Value<'a>> + Clone> {
        let (Node::List(items) | Node::Tuple(items)) = self.node() else { return None };
        Some(items.iter().map(move |at| self.at(*at)))
    }

    /// Item `i` of a list or a tuple.
    pub fn item(self, i: usize) -> Option<Value<'a>> {
        self.items()?.nth(i)
    }

    /// The keys and values of a dict as they were written. A key may repeat: the last one counts.
    pub fn entries(self) -> Option<impl ExactSizeIterator<Item = (Value<'a>, Value<'a>)>> {
        let Node::Dict(entries) = self.node() else { return None };
        // A dict's entries come in pairs.
        Some(entries.chunks_exact(2).map(move |pair| (self.at(pair[0]), self.at(pair[1]))))
    }

    /// What a dict has under a text, by a search through its entries.
    pub fn get(self, key: &str) -> Option<Value<'a>> {
        Some(self.entries()?.filter(|(other, _)| other.text() == Some(key)).last()?.1)
    }

    /// What a dict has under an integer, by a search through its entries.
    pub fn get_integer(self, key: i64) -> Option<Value<'a>> {
        Some(self.entries()?.filter(|(other, _)| other.integer() == Some(key)).last()?.1)
    }

    /// Module and name of a class or function. What `getattr` would give is `Class.method`, as newer protocols say it.
    pub fn symbol(self) -> Option<(&'a str, String)> {
        match self.view() {
            View::Symbol { module, name } => Some((module, name.to_owned())),
            View::Call { function, arguments } => {
                let View::Symbol { module: "__builtin__" | "builtins", name: "getattr" } = function.view() else {
                    return None;
                };
                let View::Symbol { module, name } = arguments.item(0)?.view() else { return None };
                Some((module, format!("{name}.{}", arguments.item(1)?.text()?)))
            }
            _ => None,
        }
    }

    /// Module and name of the function that would be called, and the arguments. A state given to what the call returns
    /// is passed over.
    pub fn call(self) -> Option<(&'a str, String, Value<'a>)> {
        let called = if let View::Build { object, .. } = self.view() { object } else { self };
        let View::Call { function, arguments } = called.view() else { return None };
        let (module, name) = function.symbol()?;
        Some((module, name, arguments))
    }

    /// A few words for what the value is, for errors.
    pub fn describe(self) -> String {
        match self.view() {
            View::None => "None".into(),
            View::Bool(_) => "a bool".into(),
            View::Integer(_) => "an integer".into(),
            View::Float(_) => "a float".into(),
            View::Text(_) => "a text".into(),
            View::Bytes(_) => "bytes".into(),
            View::List => "a list".into(),
            View::Tuple => "a tuple".into(),
            View::Dict => "a dict".into(),
            View::Symbol { module, name } => format!("{module}.{name}"),
            View::Call { .. } | View::Build { .. } => match self.call() {
                Some((module, name, _)) => format!("what {module}.{name} returns"),
                None => "what a call returns".into(),
            },
        }
    }
}
