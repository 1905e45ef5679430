//! Access tokens of a repository (A31, B15).

use evenkeel_operator::Error;
use evenkeel_steps::FailureClass;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use super::Site;

#[expect(
    clippy::disallowed_methods,
    reason = "the host counts the days by the clock of the machine"
)]
fn in_days(days: i64) -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date() + days.days()
}

#[tokio::test]
async fn gitlab_tokens_are_made_listed_and_revoked() {
    let site = Site::gitlab().await;
    let (host, project) = (site.host(), site.new_project().await);
    assert_eq!(host.access_tokens(&project).await.unwrap(), []);
    let first = host
        .create_access_token(&project, "t-one", in_days(30))
        .await
        .unwrap();
    assert_eq!(first.expires_on, in_days(30));
    assert!(!format!("{first:?}").contains(first.secret.expose()));
    // The next one leaves the first as it is: who still uses that is not cut off.
    let second = host
        .create_access_token(&project, "t-one", in_days(30))
        .await
        .unwrap();
    assert_ne!(first.id, second.id);
    let active = |tokens: &[evenkeel_operator::git::PresentToken]| -> Vec<u64> {
        let active = tokens.iter().filter(|token| token.is_active);
        active.map(|token| token.id).collect()
    };
    let seen = host.access_tokens(&project).await.unwrap();
    assert_eq!(active(&seen), [first.id, second.id]);
    assert_eq!(seen[0].expires_on, Some(in_days(30)));
    host.revoke_access_token(&project, first.id).await.unwrap();
    host.revoke_access_token(&project, first.id).await.unwrap();
    let seen = host.access_tokens(&project).await.unwrap();
    assert_eq!(active(&seen), [second.id]);
    let Some(double) = site.double_or("a token that has ended: nobody waits for a day") else {
        return;
    };
    double.expire_tokens(project.id.0);
    let seen = host.access_tokens(&project).await.unwrap();
    assert!(active(&seen).is_empty());
}

/// B15: tokens pile up over the years, and the one that counts may be on any page.
#[tokio::test]
async fn more_tokens_than_a_page_are_all_listed() {
    let site = Site::gitlab().await;
    let (host, project) = (site.host(), site.new_project().await);
    for _ in 0..120 {
        host.create_access_token(&project, "t-one", in_days(30))
            .await
            .unwrap();
    }
    assert_eq!(host.access_tokens(&project).await.unwrap().len(), 120);
}

#[tokio::test]
async fn a_day_that_no_token_can_have_is_told() {
    let site = Site::gitlab().await;
    let (host, project) = (site.host(), site.new_project().await);
    for day in [in_days(0), in_days(400)] {
        let error = host
            .create_access_token(&project, "t-one", day)
            .await
            .unwrap_err();
        assert_eq!(error.class(), FailureClass::Invalid, "{error}");
        assert!(error.to_string().contains("Expiration date"), "{error}");
    }
}

/// Gitea has tokens of people alone, which are no match for one repository.
#[tokio::test]
async fn gitea_has_no_such_tokens_and_says_so() {
    let (host, project) = (Site::Gitea.host(), Site::Gitea.new_project().await);
    for error in [
        host.access_tokens(&project).await.unwrap_err(),
        host.create_access_token(&project, "t-one", in_days(30))
            .await
            .unwrap_err(),
        host.revoke_access_token(&project, 1).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert_eq!(error.class(), FailureClass::Invalid);
        assert!(error.to_string().contains("use a deploy key"), "{error}");
    }
}
