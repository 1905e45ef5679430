//! Variables of a repository's pipelines.

use evenkeel_core::Sensitive;

/// What a host knows of a variable beside its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariableOptions {
    /// What it is for.
    pub description: String,
    /// Only protected branches and tags see it.
    pub is_protected: bool,
    /// Nothing in it is expanded.
    pub is_raw: bool,
}

/// A variable as its host shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its value; none where the host does not show what it keeps secret.
    pub value: Option<Sensitive<String>>,
    /// Whether the host hides it in logs.
    pub is_masked: bool,
    /// The rest; none at a host that has no such options.
    pub options: Option<VariableOptions>,
}

/// What a variable is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableSetting {
    /// Its value.
    pub value: Sensitive<String>,
    /// Whether the host hides it in logs.
    pub is_masked: bool,
    /// The rest. A host that has no such options leaves them out.
    pub options: VariableOptions,
}

/// Whether a variable is as it is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// It is.
    Same,
    /// It is not.
    Different,
    /// All that is shown of it is; its value is not shown.
    Hidden,
}

impl VariableSetting {
    /// Of this value, shown in logs, without options.
    pub fn plain(value: Sensitive<String>) -> Self {
        Self {
            value,
            is_masked: false,
            options: VariableOptions::default(),
        }
    }

    /// Of this value, hidden in logs, without options.
    pub fn masked(value: Sensitive<String>) -> Self {
        Self {
            is_masked: true,
            ..Self::plain(value)
        }
    }

    /// Whether a variable is so already.
    pub fn compare(&self, present: &Variable) -> Comparison {
        let options_differ = present
            .options
            .as_ref()
            .is_some_and(|options| *options != self.options);
        if options_differ || present.is_masked != self.is_masked {
            return Comparison::Different;
        }
        match &present.value {
            None => Comparison::Hidden,
            Some(value) if *value == self.value => Comparison::Same,
            Some(_) => Comparison::Different,
        }
    }
}
