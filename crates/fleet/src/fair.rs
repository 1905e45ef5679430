//! In which order due clusters are looked at: lane by lane, and inside a lane tenant by tenant in turn. Pure.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use evenkeel_core::DueReason;

/// Whose a cluster is; those without a tenant share one.
pub(crate) type Tenant = Option<String>;

/// Orders what is due, of which `key` tells lane and tenant; `busy` says how many of each tenant are under way. Whoever
/// has least has the next turn, and inside a tenant the order stays.
pub(crate) fn in_turn<T>(
    due: Vec<T>,
    key: impl Fn(&T) -> (DueReason, Tenant),
    busy: &HashMap<Tenant, usize>,
) -> VecDeque<T> {
    let mut ordered = VecDeque::with_capacity(due.len());
    let mut had = busy.clone();
    let mut lane: Vec<(Tenant, T)> = Vec::new();
    let mut reason = None;
    for item in due {
        let (next, tenant) = key(&item);
        // What stands together in one lane is in turn; across lanes the order stays.
        if reason.replace(next).is_some_and(|before| before != next) {
            take_turns(std::mem::take(&mut lane), &mut had, &mut ordered);
        }
        lane.push((tenant, item));
    }
    take_turns(lane, &mut had, &mut ordered);
    ordered
}

fn take_turns<T>(lane: Vec<(Tenant, T)>, had: &mut HashMap<Tenant, usize>, ordered: &mut VecDeque<T>) {
    let mut places: HashMap<Tenant, usize> = HashMap::new();
    let mut tenants: Vec<(Tenant, VecDeque<T>)> = Vec::new();
    for (tenant, item) in lane {
        let place = *places.entry(tenant.clone()).or_insert_with(|| {
            tenants.push((tenant, VecDeque::new()));
            tenants.len() - 1
        });
        if let Some((_, items)) = tenants.get_mut(place) {
            items.push_back(item);
        }
    }
    // Of two that have the same, whoever came first.
    let first = |(place, (tenant, _)): (usize, &(Tenant, _))| {
        Reverse((had.get(tenant).copied().unwrap_or_default(), place))
    };
    let mut turns: BinaryHeap<_> = tenants.iter().enumerate().map(first).collect();
    while let Some(Reverse((count, place))) = turns.pop() {
        let Some((tenant, items)) = tenants.get_mut(place) else {
            continue;
        };
        if let Some(item) = items.pop_front() {
            ordered.push_back(item);
            had.insert(tenant.clone(), count + 1);
        }
        if !items.is_empty() {
            turns.push(Reverse((count + 1, place)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Item = (DueReason, &'static str, u32);

    fn ordered(due: &[Item], busy: &[(&str, usize)]) -> Vec<String> {
        let busy = busy
            .iter()
            .map(|(tenant, count)| (Some((*tenant).to_owned()), *count))
            .collect();
        let key = |item: &Item| (item.0, Some(item.1.to_owned()));
        let ordered = in_turn(due.to_vec(), key, &busy);
        ordered
            .iter()
            .map(|(_, tenant, number)| format!("{tenant}{number}"))
            .collect()
    }

    #[test]
    fn tenants_take_turns_inside_a_lane() {
        use DueReason::{Change, Periodic};
        let due = [
            (Change, "a", 1),
            (Change, "a", 2),
            (Change, "a", 3),
            (Change, "b", 1),
            (Periodic, "a", 4),
            (Periodic, "b", 2),
        ];
        assert_eq!(ordered(&due, &[]), ["a1", "b1", "a2", "a3", "b2", "a4"]);
    }

    #[test]
    fn who_has_much_under_way_waits_for_the_others() {
        use DueReason::Change;
        let due = [
            (Change, "a", 1),
            (Change, "a", 2),
            (Change, "b", 1),
            (Change, "b", 2),
            (Change, "c", 1),
        ];
        assert_eq!(ordered(&due, &[("a", 30)]), ["b1", "c1", "b2", "a1", "a2"]);
        assert_eq!(ordered(&[], &[]), Vec::<String>::new());
    }
}
