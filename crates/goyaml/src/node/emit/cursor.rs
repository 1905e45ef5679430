//! Where the writer stands in the text, and the small things it writes there.

use super::scalar::is_break;

#[derive(Debug)]
pub(super) struct Cursor {
    pub(super) out: String,
    /// Characters in the current line.
    pub(super) column: usize,
    /// Indentation of the current block; -1 before the first.
    pub(super) indent: isize,
    /// The last character was white space, or no more is needed.
    pub(super) whitespace: bool,
    /// The line so far is indentation (with `- ` and `? `) only.
    pub(super) indention: bool,
    /// A foot comment was written last, at this indentation: an empty line must follow.
    pub(super) foot_indent: Option<isize>,
}

impl Default for Cursor {
    fn default() -> Self {
        Self {
            out: String::new(),
            column: 0,
            indent: -1,
            whitespace: true,
            indention: true,
            foot_indent: None,
        }
    }
}

impl Cursor {
    pub(super) fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    pub(super) fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
        self.indention = true;
    }

    /// A break of the text itself: a line feed ends the line as ours do, others stand as they are.
    pub(super) fn write_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
        self.indention = true;
    }

    /// A blank, if there must be one.
    pub(super) fn space(&mut self) {
        if !self.whitespace {
            self.put(' ');
        }
    }

    /// Text without breaks.
    pub(super) fn text(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
        self.whitespace = false;
        self.indention = false;
    }

    /// A sign: whether a blank must stand before it, whether it is as good as one, and as good as indentation.
    pub(super) fn indicator(&mut self, sign: &str, spaced: bool, is_whitespace: bool, is_indention: bool) {
        if spaced {
            self.space();
        }
        self.out.push_str(sign);
        self.column += sign.chars().count();
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    pub(super) fn write_indent(&mut self) {
        let indent = self.indent.max(0);
        let column = isize::try_from(self.column).unwrap_or(isize::MAX);
        if !self.indention || column > indent || column == indent && !self.whitespace {
            self.put_break();
        }
        if self.foot_indent == Some(indent) {
            self.put_break();
        }
        while isize::try_from(self.column).unwrap_or(isize::MAX) < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.foot_indent = None;
    }

    /// The part of a tag behind its handle.
    pub(super) fn tag_content(&mut self, content: &str) {
        for c in content.chars() {
            if c.is_ascii_alphanumeric() || "_-;/?:@&=+$,.~*'()[]".contains(c) {
                self.put(c);
            } else {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    self.out.push_str(&format!("%{byte:02X}"));
                    self.column += 3;
                }
            }
        }
        self.whitespace = false;
        self.indention = false;
    }

    /// Lines of a comment; the line ends behind it.
    pub(super) fn comment(&mut self, comment: &str) {
        let (mut breaks, mut pound) = (false, false);
        for c in comment.chars() {
            if is_break(c) {
                self.write_break(c);
                breaks = true;
                pound = false;
            } else {
                if breaks {
                    self.write_indent();
                }
                if !pound {
                    if c != '#' {
                        self.put('#');
                        self.put(' ');
                    }
                    pound = true;
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
        if !breaks {
            self.put_break();
        }
        self.whitespace = true;
    }
}
