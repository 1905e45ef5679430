//! The double of GitLab as a server of its own, to try things at: `cargo run -p evenkeel-testkit --example gitlab`.

#![allow(clippy::print_stdout, reason = "it says where it is")]

#[tokio::main]
async fn main() {
    let double = evenkeel_testkit::GitLab::start().await;
    println!(
        "EVENKEEL_GITLAB_URL={} EVENKEEL_GITLAB_TOKEN={}",
        double.url(),
        double.token()
    );
    std::future::pending::<()>().await;
}
