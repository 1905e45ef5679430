//! A pipeline in words, for documentation and for tests that pin its shape.

use std::fmt::{self, Write as _};

use crate::graph::{Cause, Edge, Graph};

/// Prints a pipeline: `Display` as text, [`Description::dot`] for Graphviz. The same pipeline always prints the
/// same bytes.
pub struct Description<'a, S>(pub(crate) &'a Graph<S>);

impl<S> fmt::Display for Description<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let graph = self.0;
        writeln!(f, "pipeline {}", graph.name)?;
        let given: Vec<&str> = graph
            .slots
            .iter()
            .filter(|slot| slot.given)
            .map(|slot| slot.id.name)
            .collect();
        if !given.is_empty() {
            writeln!(f, "given {}", given.join(", "))?;
        }
        for (position, number) in graph.order.iter().enumerate() {
            let node = &graph.nodes[*number];
            write!(f, "{:>3}. {}", position + 1, node.name)?;
            if node.weight != 0 {
                write!(f, " [weight {}]", node.weight)?;
            }
            writeln!(f)?;
            let mut line = |label: &str, text: &str| writeln!(f, "       {label:<9}{text}");
            if let Some(when) = &node.when {
                line("when", &when.to_string())?;
            }
            if !node.edges.is_empty() {
                let edges: Vec<String> = node.edges.iter().map(|edge| self.edge(edge)).collect();
                line("after", &edges.join(", "))?;
            }
            let optional: Vec<&str> = node
                .needs
                .iter()
                .filter(|need| need.optional)
                .map(|need| need.id.name)
                .collect();
            if !optional.is_empty() {
                line("may use", &optional.join(", "))?;
            }
            if !node.provides.is_empty() {
                let slots: Vec<&str> = node
                    .provides
                    .iter()
                    .map(|slot| graph.slots[*slot].id.name)
                    .collect();
                line("provides", &slots.join(", "))?;
            }
            for permission in &node.rights.may {
                line("may", &permission.to_string())?;
            }
            line("timeout", &format!("{:?}", node.timeout))?;
            if node.live_only {
                line("dry run", "skipped")?;
            }
        }
        Ok(())
    }
}

impl<S> Description<'_, S> {
    /// The graph in the DOT language of Graphviz.
    pub fn dot(&self) -> String {
        let graph = self.0;
        let mut text = format!(
            "digraph {:?} {{\n  rankdir=LR;\n  node [shape=box];\n",
            graph.name.as_str()
        );
        for number in &graph.order {
            let node = &graph.nodes[*number];
            let mut label = node.name.as_str().to_owned();
            if let Some(when) = &node.when {
                label.push_str("\\nwhen ");
                label.push_str(&when.to_string().replace('\\', "\\\\").replace('"', "\\\""));
            }
            // Writing into a String cannot fail.
            let _ = writeln!(text, "  {:?} [label=\"{label}\"];", node.name.as_str());
            for edge in &node.edges {
                let from = graph.nodes[edge.from].name.as_str();
                let slots: Vec<&str> = edge.causes.iter().filter_map(slot).collect();
                let style = if edge.require_success { ", style=bold" } else { "" };
                let _ = writeln!(
                    text,
                    "  {from:?} -> {:?} [label=\"{}\"{style}];",
                    node.name.as_str(),
                    slots.join(", ")
                );
            }
        }
        text.push_str("}\n");
        text
    }

    fn edge(&self, edge: &Edge) -> String {
        let name = &self.0.nodes[edge.from].name;
        let mut notes: Vec<String> = edge
            .causes
            .iter()
            .filter_map(slot)
            .map(|slot| format!("slot {slot}"))
            .collect();
        if edge.require_success {
            notes.push("must succeed".to_owned());
        }
        if notes.is_empty() {
            name.to_string()
        } else {
            format!("{name} ({})", notes.join(", "))
        }
    }
}

fn slot(cause: &Cause) -> Option<&'static str> {
    match cause {
        Cause::Slot(name) => Some(name),
        Cause::After | Cause::AfterSuccess | Cause::Before => None,
    }
}
