//! Addresses and node ports of services.

use serde_json::{Value, json};

use super::State;
use crate::json::{at, items, items_mut, number, remove, set, set_missing, text};
use crate::object::Object;
use crate::status::{ApiError, Cause};

/// Services get addresses in 10.96.0.0/16, the first of which is that of the API server.
const NETWORK: [u8; 2] = [10, 96];
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

fn address(offset: u32) -> String {
    format!(
        "{}.{}.{}.{}",
        NETWORK[0],
        NETWORK[1],
        offset >> 8 & 0xff,
        offset & 0xff
    )
}

fn offset(address: &str) -> Option<u32> {
    let ip: std::net::Ipv4Addr = address.parse().ok()?;
    let [a, b, c, d] = ip.octets();
    ([a, b] == NETWORK).then_some(u32::from(c) << 8 | u32::from(d))
}

impl State {
    /// Gives a service what it lacks, or carries over what it has.
    pub(super) fn allocate_service(
        &mut self,
        live: Option<&Value>,
        service: &mut Value,
        dry_run: bool,
    ) -> Result<(), ApiError> {
        let kind = text(service, &["spec", "type"]).to_owned();
        if kind == "ExternalName" {
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                remove(service, &["spec", field]);
            }
            return Ok(());
        }
        if let Some(live) = live {
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if let Some(value) =
                    at(live, &["spec", field]).filter(|_| at(service, &["spec", field]).is_none())
                {
                    set(service, &["spec", field], value.clone());
                }
            }
            carry_node_ports(live, service);
        }
        let wanted = text(service, &["spec", "clusterIP"]).to_owned();
        let before = live
            .map(|live| text(live, &["spec", "clusterIP"]).to_owned())
            .unwrap_or_default();
        let address = if wanted.is_empty() {
            let free = (1..=0xfffe_u32).find(|offset| !self.addresses.contains(offset));
            let free = free.ok_or_else(|| ApiError::internal("range is full"))?;
            if !dry_run {
                self.addresses.insert(free);
            }
            address(free)
        } else {
            if let Some(offset) = offset(&wanted).filter(|_| wanted != before && before.is_empty()) {
                if self.addresses.contains(&offset) {
                    let shown = Value::from(wanted.as_str()).to_string();
                    let cause = Cause::invalid(
                        "spec.clusterIPs",
                        &format!("[{shown}]"),
                        &format!("failed to allocate IP {wanted}: provided IP is already allocated"),
                    );
                    let name = text(service, &["metadata", "name"]).to_owned();
                    return Err(ApiError::invalid("", "Service", &name, vec![cause]));
                }
                if !dry_run {
                    self.addresses.insert(offset);
                }
            }
            wanted
        };
        set(service, &["spec", "clusterIP"], address.as_str());
        if items(service, &["spec", "clusterIPs"]).len() < 2 {
            set(service, &["spec", "clusterIPs"], json!([address]));
        }
        // A headless service that selects nothing may point anywhere.
        let anywhere = address == "None" && at(service, &["spec", "selector"]).is_none();
        let (families, policy) = if anywhere {
            (json!(["IPv4", "IPv6"]), "RequireDualStack")
        } else {
            (json!(["IPv4"]), "SingleStack")
        };
        set_missing(service, &["spec", "ipFamilies"], families);
        set_missing(service, &["spec", "ipFamilyPolicy"], policy);
        self.allocate_node_ports(&kind, service, dry_run);
        Ok(())
    }

    fn allocate_node_ports(&mut self, kind: &str, service: &mut Value, dry_run: bool) {
        let wanted = kind == "NodePort"
            || (kind == "LoadBalancer"
                && at(service, &["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool)
                    != Some(false));
        if !wanted {
            return;
        }
        for port in items_mut(service, &["spec", "ports"]) {
            match number(port, &["nodePort"])
                .and_then(|port| u16::try_from(port).ok())
                .filter(|port| *port != 0)
            {
                Some(given) => {
                    if !dry_run {
                        self.node_ports.insert(given);
                    }
                }
                None => {
                    let Some(free) = NODE_PORTS.clone().find(|port| !self.node_ports.contains(port)) else {
                        return;
                    };
                    if !dry_run {
                        self.node_ports.insert(free);
                    }
                    set(port, &["nodePort"], free);
                }
            }
        }
    }

    /// Gives back what a deleted service held.
    pub(super) fn release_service(&mut self, service: &Object) {
        let value = service.to_value("v1", "Service");
        if let Some(offset) = offset(text(&value, &["spec", "clusterIP"])) {
            self.addresses.remove(&offset);
        }
        for port in items(&value, &["spec", "ports"]) {
            if let Some(port) = number(port, &["nodePort"]).and_then(|port| u16::try_from(port).ok()) {
                self.node_ports.remove(&port);
            }
        }
    }
}

/// Ports keep their node port where an update leaves it out.
fn carry_node_ports(live: &Value, service: &mut Value) {
    let live_ports = items(live, &["spec", "ports"]).to_vec();
    for port in items_mut(service, &["spec", "ports"]) {
        if number(port, &["nodePort"]).unwrap_or(0) != 0 {
            continue;
        }
        let same = live_ports.iter().find(|known| {
            known.get("port") == port.get("port") && known.get("protocol") == port.get("protocol")
        });
        if let Some(node_port) = same.and_then(|known| known.get("nodePort")) {
            set(port, &["nodePort"], node_port.clone());
        }
    }
}
