//! The stack machine that runs a pickle.

use super::Error;
use super::tokens::{PickleOpcode, PythonContainer, StackSpan, Tokens};

/// Entries in a page of the memo.
const PAGE: usize = 1 << 10;

/// Builds values for the machine. `at` is the offset of the current token.
pub(super) trait PickleBuilder {
    /// A value on the stack and in the memo.
    type Value: Copy;

    /// Makes a value without parts.
    fn leaf(&mut self, token: PickleOpcode<'_>, at: usize) -> Result<Self::Value, Error>;
    /// Makes a class or function, given the texts of its names.
    fn symbol(&mut self, module: Self::Value, name: Self::Value, at: usize) -> Result<Self::Value, Error>;
    /// Makes a container; the `items` of a dict are alternating keys and values.
    fn make(&mut self, container: PythonContainer, items: &[Self::Value], at: usize) -> Result<Self::Value, Error>;
    /// Adds items to a container.
    fn extend(
        &mut self,
        into: Self::Value,
        like: PythonContainer,
        items: &[Self::Value],
        at: usize,
    ) -> Result<(), Error>;
    /// Makes the result of a call.
    fn call(&mut self, function: Self::Value, arguments: Self::Value, at: usize) -> Result<Self::Value, Error>;
    /// Makes an object with a state, which replaces the object.
    fn build(&mut self, object: Self::Value, state: Self::Value, at: usize) -> Result<Self::Value, Error>;
}

/// A memory budget that is charged before each allocation.
pub(super) struct PickleBudget {
    pub used: usize,
    pub limit: usize,
}

impl PickleBudget {
    /// Makes room for `more` elements. During the move, both allocations count.
    pub fn grow<T>(&mut self, elements: &mut Vec<T>, more: usize) -> Result<(), Error> {
        let before = elements.capacity() * size_of::<T>();
        let bytes = elements.len().saturating_add(more).saturating_mul(size_of::<T>());
        let needed = self.used.saturating_add(bytes);
        if needed > self.limit || elements.try_reserve_exact(more).is_err() {
            return Err(Error::Memory { needed, limit: self.limit });
        }
        self.used = needed - before;
        Ok(())
    }

    #[inline]
    fn push<T>(&mut self, elements: &mut Vec<T>, element: T) -> Result<(), Error> {
        if elements.len() == elements.capacity() {
            let more = (elements.len() / 2).max(64);
            self.grow(elements, more)?;
        }
        elements.push(element);
        Ok(())
    }
}

/// A machine that is running a pickle.
pub(super) struct Machine<'a, V: PickleBuilder> {
    pub tokens: Tokens<'a>,
    pub values: V,
    pub stack: Vec<V::Value>,
    /// The stack's length at each `MARK`.
    pub marks: Vec<usize>,
    /// The memo, in pages, so that it grows without moving.
    pub memo: Vec<Vec<Option<V::Value>>>,
    /// Entries of `memo` in use.
    written: usize,
    /// Most entries of `memo`.
    most: usize,
    budget: PickleBudget,
    /// Offset of the current token.
    at: usize,
}

impl<'a, V: PickleBuilder> Machine<'a, V> {
    /// A machine that takes at most `budget` for its stack and for a memo of `most` entries.
    pub fn new(tokens: Tokens<'a>, values: V, most: usize, budget: PickleBudget) -> Self {
        let at = tokens.at();
        Self { tokens, values, stack: Vec::new(), marks: Vec::new(), memo: Vec::new(), written: 0, most, budget, at }
    }

    pub fn wrong(&self, what: &'static str) -> Error {
        Error::Token { at: self.at, what }
    }

    #[inline]
    pub fn push(&mut self, value: V::Value) -> Result<(), Error> {
        self.budget.push(&mut self.stack, value)
    }

    pub fn mark(&mut self) -> Result<(), Error> {
        self.budget.push(&mut self.marks, self.stack.len())
    }

    /// Index of the first of the `n` topmost values, or of those above the last mark, which is removed.
    #[inline]
    fn begin(&mut self, span: StackSpan) -> Result<usize, Error> {
        match span {
            StackSpan::Mark => self.marks.pop().ok_or(self.wrong("there is no mark on the stack")),
            StackSpan::Values(n) => {
                let floor = self.marks.last().copied().unwrap_or(0);
                let begin = self.stack.len().checked_sub(n).filter(|begin| *begin >= floor);
                begin.ok_or(self.wrong("there are too few values on the stack"))
            }
        }
    }

    #[inline]
    fn pop(&mut self) -> Result<V::Value, Error> {
        self.begin(StackSpan::Values(1))?;
        self.stack.pop().ok_or(self.wrong("the stack is empty"))
    }

    #[inline]
    fn top(&mut self) -> Result<V::Value, Error> {
        let begin = self.begin(StackSpan::Values(1))?;
        Ok(self.stack[begin])
    }

    fn make(&mut self, container: PythonContainer, begin: usize) -> Result<V::Value, Error> {
        let made = self.values.make(container, &self.stack[begin..], self.at)?;
        self.stack.truncate(begin);
        Ok(made)
    }

    /// Writes a memo entry.
    #[inline]
    pub fn put(&mut self, index: usize, value: V::Value) -> Result<(), Error> {
        if index >= self.most {
            return Err(Error::Limit { what: "memo entries", most: self.most });
        }
        while self.memo.len() <= index / PAGE {
            let mut page = Vec::new();
            self.budget.grow(&mut page, PAGE)?;
            page.resize(PAGE, None);
            self.budget.push(&mut self.memo, page)?;
        }
        self.written += usize::from(self.memo[index / PAGE][index % PAGE].replace(value).is_none());
        Ok(())
    }

    /// Runs one opcode; `false` after the last one.
    #[inline]
    pub fn step(&mut self) -> Result<bool, Error> {
        let at = self.tokens.at();
        self.at = at;
        let value = match self.tokens.next()? {
            PickleOpcode::Nothing => return Ok(true),
            PickleOpcode::Stop => return Ok(false),
            PickleOpcode::Mark => return self.mark().map(|()| true),
            PickleOpcode::Memoize => {
                let top = self.top()?;
                return self.put(self.written, top).map(|()| true);
            }
            PickleOpcode::Put(index) => {
                let top = self.top()?;
                return self.put(usize::try_from(index).unwrap_or(usize::MAX), top).map(|()| true);
            }
            PickleOpcode::Extend(container, span) => {
                let begin = self.begin(span)?;
                let into = begin.checked_sub(1).filter(|into| self.marks.last().is_none_or(|floor| into >= floor));
                let into = into.ok_or(self.wrong("there is no container on the stack"))?;
                self.values.extend(self.stack[into], container, &self.stack[begin..], at)?;
                self.stack.truncate(begin);
                return Ok(true);
            }
            // Without a value above the last mark, the mark itself is popped.
            PickleOpcode::Pop if self.marks.last() == Some(&self.stack.len()) => {
                self.marks.pop();
                return Ok(true);
            }
            PickleOpcode::Pop => return self.pop().map(|_| true),
            PickleOpcode::PopMark => {
                let begin = self.begin(StackSpan::Mark)?;
                self.stack.truncate(begin);
                return Ok(true);
            }
            PickleOpcode::Duplicate => self.top()?,
            PickleOpcode::Get(index) => {
                let entry = usize::try_from(index).ok().and_then(|index| self.memo.get(index / PAGE)?[index % PAGE]);
                entry.ok_or(self.wrong("there is no such memo entry"))?
            }
            PickleOpcode::Make(container, span) => {
                let begin = self.begin(span)?;
                self.make(container, begin)?
            }
            PickleOpcode::StackGlobal => {
                let name = self.pop()?;
                let module = self.pop()?;
                self.values.symbol(module, name, at)?
            }
            PickleOpcode::Call => {
                let arguments = self.pop()?;
                let function = self.pop()?;
                self.values.call(function, arguments, at)?
            }
            // Named arguments are ignored.
            PickleOpcode::CallNamed => {
                self.pop()?;
                let arguments = self.pop()?;
                let function = self.pop()?;
                self.values.call(function, arguments, at)?
            }
            PickleOpcode::Instance(module, name) => {
                let begin = self.begin(StackSpan::Mark)?;
                let arguments = self.make(PythonContainer::Tuple, begin)?;
                let class = self.values.leaf(PickleOpcode::Global(module, name), at)?;
                self.values.call(class, arguments, at)?
            }
            PickleOpcode::Object => {
                let begin = self.begin(StackSpan::Mark)?;
                let class = self.stack.get(begin).copied().ok_or(self.wrong("there is no class on the stack"))?;
                let arguments = self.make(PythonContainer::Tuple, begin + 1)?;
                self.stack.truncate(begin);
                self.values.call(class, arguments, at)?
            }
            PickleOpcode::Build => {
                let state = self.pop()?;
                let object = self.pop()?;
                self.values.build(object, state, at)?
            }
            leaf => self.values.leaf(leaf, at)?,
        };
        self.push(value)?;
        Ok(true)
    }
}
