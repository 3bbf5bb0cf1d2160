//! The stack machine of small pickles.

use super::tokens::{self, Container, Token, Tokens};
use super::tree::{Node, Tree, VALUES, Value};
use super::Error;

/// Most bytes of a pickle that is read into a tree.
const BYTES: usize = 1 << 20;
/// Most memo entries.
const MEMO: usize = 100_000;
/// Stands for `MARK` on the stack; no place in the arena.
const MARK: u32 = u32::MAX;

/// Reads a pickle of up to 1 MiB. Bytes after its end are ignored.
///
/// # Errors
/// What is malformed or not read, and where; limits; a value that contains itself.
pub fn attribute(bytes: &[u8]) -> Result<Tree, Error> {
    if bytes.len() > BYTES {
        return Err(Error::Limit { what: "bytes", most: BYTES });
    }
    let mut machine = Machine::new(bytes);
    while machine.step()? {}
    let root = machine.result().ok_or(Error::Stack { at: machine.tokens.at(), what: "single value" })?;
    Tree::new(machine.nodes, root)
}

/// A machine at work.
pub(super) struct Machine<'a> {
    pub tokens: Tokens<'a>,
    nodes: Vec<Node>,
    /// Where the token of each value stands.
    origins: Vec<usize>,
    stack: Vec<u32>,
    memo: Vec<Option<u32>>,
    /// Entries of `memo` that are written.
    written: usize,
    /// Where the token at hand begins.
    at: usize,
}

impl<'a> Machine<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            tokens: Tokens::new(bytes, 0),
            nodes: Vec::new(),
            origins: Vec::new(),
            stack: Vec::new(),
            memo: Vec::new(),
            written: 0,
            at: 0,
        }
    }

    /// The values on the stack; `None` stands for a mark.
    pub fn stack(&self) -> impl ExactSizeIterator<Item = Option<Value<'_>>> {
        self.stack.iter().map(|at| (*at != MARK).then(|| Value::within(&self.nodes, *at)))
    }

    /// The memo so far: of each entry the value, and where its token stands.
    pub fn memo(&self) -> impl Iterator<Item = Option<(Value<'_>, usize)>> {
        let entry = |at: u32| Some((Value::within(&self.nodes, at), *self.origins.get(at as usize)?));
        self.memo.iter().map(move |at| at.and_then(entry))
    }

    /// The one value on the stack.
    fn result(&self) -> Option<u32> {
        if let [at] = self.stack[..] { Some(at).filter(|at| *at != MARK) } else { None }
    }

    fn missing(&self, what: &'static str) -> Error {
        Error::Stack { at: self.at, what }
    }

    fn push(&mut self, node: Node) -> Result<(), Error> {
        if self.nodes.len() >= VALUES {
            return Err(Error::Limit { what: "values", most: VALUES });
        }
        self.stack.push(self.nodes.len() as u32);
        self.nodes.push(node);
        self.origins.push(self.at);
        Ok(())
    }

    fn pop(&mut self) -> Result<u32, Error> {
        self.stack.pop().filter(|at| *at != MARK).ok_or(self.missing("value"))
    }

    fn pop_pair(&mut self) -> Result<[u32; 2], Error> {
        let above = self.pop()?;
        Ok([self.pop()?, above])
    }

    /// Takes everything above the last mark, and the mark.
    fn pop_to_mark(&mut self) -> Result<Vec<u32>, Error> {
        let mark = self.stack.iter().rposition(|at| *at == MARK).ok_or(self.missing("mark"))?;
        let above = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(above)
    }

    fn top(&self) -> Result<u32, Error> {
        self.stack.last().copied().filter(|at| *at != MARK).ok_or(self.missing("value"))
    }

    fn append(&mut self, items: &[u32]) -> Result<(), Error> {
        let top = self.top()?;
        let Some(Node::List(list)) = self.nodes.get_mut(top as usize) else { return Err(self.missing("list")) };
        list.extend_from_slice(items);
        Ok(())
    }

    fn set(&mut self, entries: &[u32]) -> Result<(), Error> {
        let top = self.top()?;
        if !entries.len().is_multiple_of(2) {
            return Err(self.missing("value for each key"));
        }
        let Some(Node::Dict(dict)) = self.nodes.get_mut(top as usize) else { return Err(self.missing("dict")) };
        dict.extend_from_slice(entries);
        Ok(())
    }

    fn put(&mut self, index: u64) -> Result<(), Error> {
        let top = self.top()?;
        let index = usize::try_from(index).ok().filter(|index| *index < MEMO);
        let index = index.ok_or(Error::Limit { what: "memo entries", most: MEMO })?;
        if self.memo.len() <= index {
            self.memo.resize(index + 1, None);
        }
        self.written += usize::from(self.memo[index].replace(top).is_none());
        Ok(())
    }

    /// Of names in a line each.
    fn symbol(&mut self, module: &[u8], name: &[u8]) -> Result<(), Error> {
        let invalid = Error::Argument { at: self.at, what: "name" };
        let text = |bytes| str::from_utf8(bytes).map_err(|_| invalid.clone());
        self.push(Node::Symbol(text(module)?.into(), text(name)?.into()))
    }

    /// Of the function below its arguments on the stack.
    fn call(&mut self) -> Result<(), Error> {
        let parts = self.pop_pair()?;
        self.push(Node::Call(parts))
    }

    /// Runs one opcode; `false` after the one that ends the pickle.
    pub fn step(&mut self) -> Result<bool, Error> {
        let at = self.tokens.at();
        self.at = at;
        let invalid = |what| Error::Argument { at, what };
        match self.tokens.next()? {
            Token::Mark => self.stack.push(MARK),
            Token::Stop => return Ok(false),
            // Of a mark alone, as of a value.
            Token::Pop => self.stack.pop().map(drop).ok_or(self.missing("value"))?,
            Token::PopMark => drop(self.pop_to_mark()?),
            Token::Duplicate => self.stack.push(self.top()?),
            Token::None => self.push(Node::None)?,
            Token::Bool(value) => self.push(Node::Bool(value))?,
            Token::Integer(value) => self.push(Node::Integer(value.ok_or(invalid("integer of 128 bits"))?))?,
            Token::Float(value) => self.push(Node::Float(value))?,
            Token::Text(encoding, bytes) => {
                let text = tokens::text(encoding, bytes).ok_or(invalid("text"))?;
                self.push(Node::Text(text.into()))?;
            }
            Token::Bytes(bytes) => self.push(Node::Bytes(bytes.into()))?,
            Token::Global(module, name) => self.symbol(module, name)?,
            Token::Instance(module, name) => {
                let arguments = self.pop_to_mark()?;
                self.symbol(module, name)?;
                self.push(Node::Tuple(arguments))?;
                self.call()?;
            }
            Token::Object => {
                let mut arguments = self.pop_to_mark()?;
                if arguments.is_empty() {
                    return Err(self.missing("class"));
                }
                self.stack.push(arguments.remove(0));
                self.push(Node::Tuple(arguments))?;
                self.call()?;
            }
            Token::StackGlobal => {
                let [module, name] = self.pop_pair()?.map(|at| self.nodes.get(at as usize));
                let (Some(Node::Text(module)), Some(Node::Text(name))) = (module, name) else {
                    return Err(self.missing("pair of names"));
                };
                self.push(Node::Symbol(module.clone(), name.clone()))?;
            }
            Token::Empty(Container::List) => self.push(Node::List(Vec::new()))?,
            Token::Empty(Container::Tuple) => self.push(Node::Tuple(Vec::new()))?,
            Token::Empty(Container::Dict) => self.push(Node::Dict(Vec::new()))?,
            Token::Collect(Container::List) => {
                let items = self.pop_to_mark()?;
                self.push(Node::List(items))?;
            }
            Token::Collect(Container::Tuple) => {
                let items = self.pop_to_mark()?;
                self.push(Node::Tuple(items))?;
            }
            Token::Collect(Container::Dict) => {
                let entries = self.pop_to_mark()?;
                self.push(Node::Dict(Vec::new()))?;
                self.set(&entries)?;
            }
            // No attribute seen has a set, nor an object made with named arguments.
            Token::Empty(Container::Set) | Token::Collect(Container::Set) | Token::AddItems | Token::CallNamed => {
                return Err(invalid("opcode of an attribute"));
            }
            Token::Tuple(n) => {
                let mut items = (0..n).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
                items.reverse();
                self.push(Node::Tuple(items))?;
            }
            Token::Append => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            Token::Appends => {
                let items = self.pop_to_mark()?;
                self.append(&items)?;
            }
            Token::SetItem => {
                let entry = self.pop_pair()?;
                self.set(&entry)?;
            }
            Token::SetItems => {
                let entries = self.pop_to_mark()?;
                self.set(&entries)?;
            }
            Token::Put(index) => self.put(index)?,
            Token::Memoize => self.put(self.written as u64)?,
            Token::Get(index) => {
                let entry = usize::try_from(index).ok().and_then(|index| *self.memo.get(index)?);
                self.stack.push(entry.ok_or(Error::Memo { at, index })?);
            }
            Token::Call => self.call()?,
            Token::Build => {
                let [object, state] = self.pop_pair()?;
                // The object stays where it is, for the memo may know it: what it was moves.
                self.push(Node::None)?;
                let (place, moved) = (object as usize, self.nodes.len() - 1);
                self.nodes.swap(place, moved);
                self.nodes[place] = Node::Build([moved as u32, state]);
                self.stack.pop();
                self.stack.push(object);
            }
            Token::Nothing => {}
        }
        Ok(true)
    }
}
