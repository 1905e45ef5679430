//! Builds parse trees from tokens. Follows Go's text/template/parse: the same texts are refused, with the same
//! messages on the same lines.

mod pipeline;

use std::collections::HashMap;
use std::sync::Arc;

use super::lexer::{Lexer, Token, TokenKind};
use super::node::{Branch, Invoke, List, Node, Pos, Source, Tree};
use crate::error::ParseError;
use crate::fmt::quote;
use crate::strconv::unquote;

/// Stack to leave, and to add, when nesting: text decides the depth, not the thread.
const RED_ZONE: usize = 128 << 10;
const STACK: usize = 2 << 20;

/// The trees of one template text.
#[derive(Clone, Debug)]
pub struct Parsed {
    main: Arc<Tree>,
    trees: Vec<Arc<Tree>>,
}

impl Parsed {
    /// The template made of the text itself, outside its `define` blocks.
    pub fn main(&self) -> &Arc<Tree> {
        &self.main
    }

    /// All templates that the text defines, the main one included; names are unique.
    pub fn trees(&self) -> &[Arc<Tree>] {
        &self.trees
    }
}

/// Parses a template text. `known` says which function names exist; others are refused, as in Go.
///
/// The result holds no reference to functions or values, so it can be kept and shared between renders and threads.
///
/// # Errors
/// Go's message with the name and the line.
pub fn parse(
    name: &str,
    text: impl Into<Arc<[u8]>>,
    known: impl Fn(&str) -> bool,
) -> std::result::Result<Parsed, ParseError> {
    let (name, text): (Arc<str>, Arc<[u8]>) = (name.into(), text.into());
    if u32::try_from(text.len()).is_err() {
        return Err(ParseError {
            name: (&*name).into(),
            line: 1,
            message: "template is larger than 4 GiB".into(),
        });
    }
    let source = Arc::new(Source { name, text });
    let mut parser = Parser {
        lexer: Lexer::new(&source.text, !known("break"), !known("continue")),
        source: &source,
        known: &known,
        tokens: [Token::start(), Token::start(), Token::start()],
        peeked: 0,
        scope: Scope::default(),
        defined: Vec::new(),
        index: HashMap::new(),
    };
    parser.parse_text()?;
    let defined = std::mem::take(&mut parser.defined);
    drop(parser);
    let tree = |(name, root)| {
        Arc::new(Tree {
            name,
            source: Arc::clone(&source),
            root,
        })
    };
    let trees: Vec<Arc<Tree>> = defined.into_iter().map(tree).collect();
    // A `define` with the name of the text itself stands for it when the text is otherwise empty.
    let main = trees.iter().find(|tree| tree.name == source.name).cloned();
    let main = main.unwrap_or_else(|| tree((Arc::clone(&source.name), List::default())));
    Ok(Parsed { main, trees })
}

impl Token {
    const fn start() -> Self {
        Self {
            kind: TokenKind::Error,
            start: 0,
            end: 0,
            line: 1,
            message: None,
        }
    }
}

/// What belongs to one tree while it is parsed.
#[derive(Default)]
struct Scope {
    vars: Vec<Box<str>>,
    range_depth: usize,
    paren_depth: usize,
    action_line: usize,
}

impl Scope {
    fn new() -> Self {
        Self {
            vars: vec!["$".into()],
            ..Self::default()
        }
    }
}

/// What ends a list of nodes.
enum Terminator {
    End,
    Else,
}

impl Terminator {
    const fn text(&self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

enum Item {
    Node(Node),
    Terminator(Terminator),
}

struct Parser<'s> {
    lexer: Lexer<'s>,
    source: &'s Arc<Source>,
    known: &'s dyn Fn(&str) -> bool,
    /// Look-ahead of up to three tokens; the first is the one read last.
    tokens: [Token; 3],
    peeked: usize,
    scope: Scope,
    defined: Vec<(Arc<str>, List)>,
    index: HashMap<Arc<str>, usize>,
}

type Result<T> = std::result::Result<T, ParseError>;

impl Parser<'_> {
    fn next(&mut self) -> Token {
        if self.peeked > 0 {
            self.peeked -= 1;
        } else {
            self.tokens[0] = self.lexer.next_token();
        }
        self.tokens.get(self.peeked).cloned().unwrap_or_else(Token::start)
    }

    fn backup(&mut self) {
        self.peeked += 1;
    }

    fn backup2(&mut self, second: Token) {
        self.tokens[1] = second;
        self.peeked = 2;
    }

    fn backup3(&mut self, third: Token, second: Token) {
        self.tokens[1] = second;
        self.tokens[2] = third;
        self.peeked = 3;
    }

    fn peek(&mut self) -> Token {
        let token = self.next();
        self.backup();
        token
    }

    fn peek_kind(&mut self) -> TokenKind {
        if self.peeked == 0 {
            self.tokens[0] = self.lexer.next_token();
            self.peeked = 1;
        }
        self.tokens
            .get(self.peeked - 1)
            .map_or(TokenKind::Eof, |token| token.kind)
    }

    fn next_non_space(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != TokenKind::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.backup();
        token
    }

    fn text(&self, token: &Token) -> &[u8] {
        self.source.text.get(token.start..token.end).unwrap_or_default()
    }

    /// Names and numbers: runs of letters and digits, always valid UTF-8.
    fn name(&self, token: &Token) -> String {
        crate::value::lossy(self.text(token))
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(self.error_at(self.tokens[0].line, message))
    }

    fn error_at(&self, line: usize, message: impl Into<String>) -> ParseError {
        ParseError {
            name: (&*self.source.name).into(),
            line,
            message: message.into(),
        }
    }

    fn describe(&self, token: &Token) -> String {
        match token.kind {
            TokenKind::Eof => "EOF".to_owned(),
            TokenKind::Error => token.message.as_deref().unwrap_or_default().to_owned(),
            kind if kind.is_keyword() => format!("<{}>", self.name(token)),
            _ => {
                let text = self.text(token);
                if text.len() > 10 {
                    let cut: usize = crate::unicode::runes(text).take(10).map(|(_, width)| width).sum();
                    format!("{}...", quote::bytes(text.get(..cut).unwrap_or(text)))
                } else {
                    quote::bytes(text)
                }
            }
        }
    }

    fn unexpected<T>(&self, token: &Token, context: &str) -> Result<T> {
        let shown = self.describe(token);
        if token.kind == TokenKind::Error {
            let mut extra = String::new();
            if self.scope.action_line != 0 && self.scope.action_line != token.line {
                // "action in action" would read badly.
                let prefix = if shown.ends_with(" action") {
                    ""
                } else {
                    " in action"
                };
                extra = format!(
                    "{prefix} started at {}:{}",
                    self.source.name, self.scope.action_line
                );
            }
            return self.error(format!("{shown}{extra}"));
        }
        self.error(format!("unexpected {shown} in {context}"))
    }

    fn expect(&mut self, kind: TokenKind, context: &str) -> Result<Token> {
        let token = self.next_non_space();
        if token.kind == kind {
            Ok(token)
        } else {
            self.unexpected(&token, context)
        }
    }

    /// The whole text, with its definitions.
    fn parse_text(&mut self) -> Result<()> {
        self.scope = Scope::new();
        let mut root = List::default();
        while self.peek_kind() != TokenKind::Eof {
            if self.peek_kind() == TokenKind::LeftDelim {
                let delim = self.next();
                if self.next_non_space().kind == TokenKind::Define {
                    let outer = std::mem::replace(&mut self.scope, Scope::new());
                    self.definition()?;
                    self.scope = outer;
                    continue;
                }
                self.backup2(delim);
            }
            match self.text_or_action()? {
                Item::Node(node) => root.nodes.push(node),
                Item::Terminator(end) => return self.error(format!("unexpected {}", end.text())),
            }
        }
        let name = Arc::clone(&self.source.name);
        self.add(name, root)
    }

    /// Registers a tree; two with content under one name in one text are an error.
    fn add(&mut self, name: Arc<str>, root: List) -> Result<()> {
        if let Some(slot) = self
            .index
            .get(&name)
            .and_then(|index| self.defined.get_mut(*index))
        {
            if slot.1.is_empty(self.source) {
                slot.1 = root;
            } else if !root.is_empty(self.source) {
                return self.error(format!(
                    "template: multiple definition of template {}",
                    quote::text(&name)
                ));
            }
            return Ok(());
        }
        self.index.insert(Arc::clone(&name), self.defined.len());
        self.defined.push((name, root));
        Ok(())
    }

    /// `define "name"` … `end`; the keyword has been read.
    fn definition(&mut self) -> Result<()> {
        const CONTEXT: &str = "define clause";
        let token = self.next_non_space();
        if !matches!(token.kind, TokenKind::Str | TokenKind::RawString) {
            return self.unexpected(&token, CONTEXT);
        }
        let name = self.unquoted(&token)?;
        self.expect(TokenKind::RightDelim, CONTEXT)?;
        let (root, end) = self.item_list()?;
        if let Terminator::Else = end {
            return self.error(format!("unexpected {} in {CONTEXT}", end.text()));
        }
        self.add(crate::value::lossy(&name).into(), root)
    }

    fn unquoted(&self, token: &Token) -> Result<Vec<u8>> {
        match unquote(self.text(token)) {
            Some(text) => Ok(text),
            None => self.error("invalid syntax"),
        }
    }

    fn item_list(&mut self) -> Result<(List, Terminator)> {
        let mut list = List::default();
        while self.peek_non_space().kind != TokenKind::Eof {
            match self.text_or_action()? {
                Item::Node(node) => list.nodes.push(node),
                Item::Terminator(end) => {
                    list.nodes.shrink_to_fit();
                    return Ok((list, end));
                }
            }
        }
        self.error("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Result<Item> {
        let token = self.next_non_space();
        match token.kind {
            TokenKind::Text => Ok(Item::Node(Node::Text {
                start: token.start as Pos,
                end: token.end as Pos,
            })),
            TokenKind::LeftDelim => {
                self.scope.action_line = token.line;
                let item = stacker::maybe_grow(RED_ZONE, STACK, || self.action())?;
                self.scope.action_line = 0;
                Ok(item)
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Result<Item> {
        let token = self.next_non_space();
        Ok(Item::Node(match token.kind {
            TokenKind::Block => self.block()?,
            TokenKind::Break => self.loop_control(&token, "{{break}}")?,
            TokenKind::Continue => self.loop_control(&token, "{{continue}}")?,
            TokenKind::Else => return self.else_control(),
            TokenKind::End => {
                self.expect(TokenKind::RightDelim, "end")?;
                return Ok(Item::Terminator(Terminator::End));
            }
            TokenKind::If => Node::If(self.control(Control::If)?),
            TokenKind::Range => Node::Range(self.control(Control::Range)?),
            TokenKind::With => Node::With(self.control(Control::With)?),
            TokenKind::Template => self.template()?,
            _ => {
                self.backup();
                Node::Action {
                    pipe: self.pipeline("command", TokenKind::RightDelim)?,
                }
            }
        }))
    }

    fn loop_control(&mut self, keyword: &Token, shown: &str) -> Result<Node> {
        let token = self.next_non_space();
        if token.kind != TokenKind::RightDelim {
            return self.unexpected(&token, shown);
        }
        if self.scope.range_depth == 0 {
            return self.error(format!("{shown} outside {{{{range}}}}"));
        }
        let pos = keyword.start as Pos;
        Ok(if keyword.kind == TokenKind::Break {
            Node::Break { pos }
        } else {
            Node::Continue { pos }
        })
    }

    fn else_control(&mut self) -> Result<Item> {
        let next = self.peek_non_space();
        // "else if" and "else with" stand for an else that holds the if: the keyword stays for the caller.
        if !matches!(next.kind, TokenKind::If | TokenKind::With) {
            self.expect(TokenKind::RightDelim, "else")?;
        }
        Ok(Item::Terminator(Terminator::Else))
    }

    fn control(&mut self, control: Control) -> Result<Box<Branch>> {
        stacker::maybe_grow(RED_ZONE, STACK, || {
            let vars = self.scope.vars.len();
            let pipe = self.pipeline(control.keyword(), TokenKind::RightDelim)?;
            let in_range = usize::from(control == Control::Range);
            self.scope.range_depth += in_range;
            let (list, end) = self.item_list()?;
            self.scope.range_depth -= in_range;
            let otherwise = match end {
                Terminator::End => None,
                Terminator::Else => Some(self.else_list(control)?),
            };
            self.scope.vars.truncate(vars);
            Ok(Box::new(Branch {
                pipe,
                list,
                otherwise,
            }))
        })
    }

    fn else_list(&mut self, control: Control) -> Result<List> {
        let chained = match (control, self.peek_kind()) {
            (Control::If, TokenKind::If) => {
                self.next();
                Node::If(self.control(Control::If)?)
            }
            (Control::With, TokenKind::With) => {
                self.next();
                Node::With(self.control(Control::With)?)
            }
            _ => {
                let (list, end) = self.item_list()?;
                return match end {
                    Terminator::End => Ok(list),
                    Terminator::Else => self.error(format!("expected end; found {}", end.text())),
                };
            }
        };
        Ok(List { nodes: vec![chained] })
    }

    fn block(&mut self) -> Result<Node> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, TokenKind::RightDelim)?;
        // In Go a block is a tree of its own; what ends it wrongly is told of where the tree around it stands.
        let line = self.tokens[0].line;
        let outer = std::mem::replace(&mut self.scope, Scope::new());
        let (root, end) = self.item_list()?;
        self.scope = outer;
        if let Terminator::Else = end {
            return Err(self.error_at(line, format!("unexpected {} in {CONTEXT}", end.text())));
        }
        self.add(name.clone().into(), root)?;
        Ok(Node::Template(Box::new(Invoke {
            pos: token.start as Pos,
            name: name.into(),
            pipe: Some(pipe),
        })))
    }

    fn template(&mut self) -> Result<Node> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != TokenKind::RightDelim {
            self.backup();
            pipe = Some(self.pipeline(CONTEXT, TokenKind::RightDelim)?);
        }
        Ok(Node::Template(Box::new(Invoke {
            pos: token.start as Pos,
            name: name.into(),
            pipe,
        })))
    }

    fn template_name(&mut self, token: &Token, context: &str) -> Result<String> {
        match token.kind {
            TokenKind::Str | TokenKind::RawString => Ok(crate::value::lossy(&self.unquoted(token)?)),
            _ => self.unexpected(token, context),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    If,
    Range,
    With,
}

impl Control {
    const fn keyword(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::Range => "range",
            Self::With => "with",
        }
    }
}
