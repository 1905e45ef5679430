//! Parses what stands inside an action: declarations, commands, operands.

use super::super::NodeRef;
use super::super::lexer::{Token, TokenKind};
use super::super::node::{Arg, Command, Number, Pipe, Pos, Variable};
use super::{Parser, RED_ZONE, Result, STACK};
use crate::fmt::quote;

/// Go's bound on nested parentheses.
const MAX_PAREN_DEPTH: usize = 10_000;

impl Parser<'_> {
    pub(super) fn pipeline(&mut self, context: &str, end: TokenKind) -> Result<Pipe> {
        let first = self.peek_non_space();
        let mut pipe = Pipe {
            pos: first.start as Pos,
            assign: false,
            decl: Vec::new(),
            cmds: Vec::with_capacity(1),
        };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => {
                    self.check_pipeline(&pipe, context)?;
                    return Ok(pipe);
                }
                TokenKind::Bool
                | TokenKind::CharConstant
                | TokenKind::Complex
                | TokenKind::Dot
                | TokenKind::Field
                | TokenKind::Identifier
                | TokenKind::Number
                | TokenKind::Nil
                | TokenKind::RawString
                | TokenKind::Str
                | TokenKind::Variable
                | TokenKind::LeftParen => {
                    self.backup();
                    pipe.cmds.push(self.command()?);
                }
                _ => return self.unexpected(&token, context),
            }
        }
    }

    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Result<()> {
        loop {
            let variable = self.peek_non_space();
            if variable.kind != TokenKind::Variable {
                return Ok(());
            }
            self.next();
            // A space is a token, so three tokens may be needed to know that "$x foo" declares nothing.
            let after = self.peek();
            let next = self.peek_non_space();
            match next.kind {
                TokenKind::Assign | TokenKind::Declare => {
                    pipe.assign = next.kind == TokenKind::Assign;
                    self.next_non_space();
                    self.declare(pipe, &variable);
                    return Ok(());
                }
                TokenKind::Char if self.text(&next) == b"," => {
                    self.next_non_space();
                    self.declare(pipe, &variable);
                    if context == "range" && pipe.decl.len() < 2 {
                        match self.peek_non_space().kind {
                            TokenKind::Variable | TokenKind::RightDelim | TokenKind::RightParen => continue,
                            _ => return self.error("range can only initialize variables"),
                        }
                    }
                    return self.error(format!("too many declarations in {context}"));
                }
                _ if after.kind == TokenKind::Space => self.backup3(variable, after),
                _ => self.backup2(variable),
            }
            return Ok(());
        }
    }

    fn declare(&mut self, pipe: &mut Pipe, token: &Token) {
        let name: Box<str> = self.name(token).into();
        self.scope.vars.push(name.clone());
        pipe.decl.push(Variable {
            pos: token.start as Pos,
            name,
            fields: Vec::new(),
        });
    }

    fn check_pipeline(&self, pipe: &Pipe, context: &str) -> Result<()> {
        if pipe.cmds.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        for (index, command) in pipe.cmds.iter().enumerate().skip(1) {
            if let Some(
                Arg::Bool { .. } | Arg::Dot { .. } | Arg::Nil { .. } | Arg::Number { .. } | Arg::Str { .. },
            ) = command.args.first()
            {
                return self.error(format!("non executable command in pipeline stage {}", index + 1));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Result<Command> {
        let first = self.peek_non_space();
        let mut command = Command {
            pos: first.start as Pos,
            args: Vec::new(),
        };
        loop {
            self.peek_non_space();
            if let Some(operand) = self.operand()? {
                command.args.push(operand);
            }
            let token = self.next();
            match token.kind {
                TokenKind::Space => continue,
                TokenKind::RightDelim | TokenKind::RightParen => self.backup(),
                TokenKind::Pipe => {}
                _ => return self.unexpected(&token, "operand"),
            }
            break;
        }
        if command.args.is_empty() {
            return self.error("empty command");
        }
        command.args.shrink_to_fit();
        Ok(command)
    }

    fn operand(&mut self) -> Result<Option<Arg>> {
        let Some(node) = self.term()? else {
            return Ok(None);
        };
        if self.peek_kind() != TokenKind::Field {
            return Ok(Some(node));
        }
        let pos = self.peek().start as Pos;
        let mut more: Vec<Box<str>> = Vec::new();
        while self.peek_kind() == TokenKind::Field {
            let token = self.next();
            more.push(self.field_name(&token));
        }
        Ok(Some(match node {
            Arg::Field { mut fields, .. } => {
                fields.append(&mut more);
                Arg::Field { pos, fields }
            }
            Arg::Variable(mut variable) => {
                variable.fields.append(&mut more);
                variable.pos = pos;
                Arg::Variable(variable)
            }
            Arg::Bool { .. } | Arg::Str { .. } | Arg::Number { .. } | Arg::Nil { .. } | Arg::Dot { .. } => {
                let shown = NodeRef::Arg(&node).print(self.source);
                return self.error(format!("unexpected . after term {}", quote::text(&shown)));
            }
            node => Arg::Chain {
                pos,
                node: Box::new(node),
                fields: more,
            },
        }))
    }

    fn field_name(&self, token: &Token) -> Box<str> {
        self.name(token).trim_start_matches('.').into()
    }

    fn term(&mut self) -> Result<Option<Arg>> {
        let token = self.next_non_space();
        let pos = token.start as Pos;
        Ok(Some(match token.kind {
            TokenKind::Identifier => {
                let name = self.name(&token);
                if !(self.known)(&name) {
                    return self.error(format!("function {} not defined", quote::text(&name)));
                }
                Arg::Ident {
                    pos,
                    name: name.into(),
                }
            }
            TokenKind::Dot => Arg::Dot { pos },
            TokenKind::Nil => Arg::Nil { pos },
            TokenKind::Variable => {
                let name: Box<str> = self.name(&token).into();
                if !self.scope.vars.contains(&name) {
                    return self.error(format!("undefined variable {}", quote::text(&name)));
                }
                Arg::Variable(Variable {
                    pos,
                    name,
                    fields: Vec::new(),
                })
            }
            TokenKind::Field => Arg::Field {
                pos,
                fields: vec![self.field_name(&token)],
            },
            TokenKind::Bool => Arg::Bool {
                pos,
                value: self.text(&token) == b"true",
            },
            TokenKind::CharConstant | TokenKind::Complex | TokenKind::Number => {
                match Number::parse(&self.name(&token), token.kind) {
                    Ok(number) => Arg::Number {
                        pos,
                        number: Box::new(number),
                    },
                    Err(message) => return self.error(message),
                }
            }
            TokenKind::LeftParen => {
                if self.scope.paren_depth >= MAX_PAREN_DEPTH {
                    return self.error("max expression depth exceeded");
                }
                self.scope.paren_depth += 1;
                let pipe = stacker::maybe_grow(RED_ZONE, STACK, || {
                    self.pipeline("parenthesized pipeline", TokenKind::RightParen)
                })?;
                self.scope.paren_depth -= 1;
                Arg::Pipe(Box::new(pipe))
            }
            TokenKind::Str | TokenKind::RawString => {
                let text = self.unquoted(&token)?;
                Arg::Str {
                    pos,
                    quoted: self.text(&token).into(),
                    text: text.into(),
                }
            }
            _ => {
                self.backup();
                return Ok(None);
            }
        }))
    }
}
