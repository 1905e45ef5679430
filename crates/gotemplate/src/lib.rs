//! Go text/template, fmt and Sprig. Pure.
