//! The wire to a cluster, which can be counted, cut and held shut; TLS goes through it as it is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A wire on the loopback interface; ends when dropped.
pub(crate) struct Wire {
    address: SocketAddr,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

struct State {
    upstream: SocketAddr,
    connections: AtomicUsize,
    open: AtomicUsize,
    shut: AtomicBool,
    cuts: watch::Sender<u64>,
}

impl Wire {
    /// A wire to the server of `kubeconfig`, which must be on the loopback interface, and a kubeconfig that leads over it.
    pub(crate) async fn to(kubeconfig: &str, server: &str) -> (Self, String) {
        let authority = server.trim_start_matches("https://");
        let authority = authority.split('/').next().unwrap();
        let upstream: SocketAddr = authority.parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            upstream,
            connections: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            shut: AtomicBool::new(false),
            cuts: watch::Sender::new(0),
        });
        #[allow(clippy::disallowed_methods, reason = "ended by whoever drops the wire")]
        let serving = tokio::spawn(serve(listener, Arc::clone(&state)));
        let over = kubeconfig.replace(authority, &address.to_string());
        assert_ne!(over, kubeconfig);
        let wire = Self {
            address,
            state,
            serving,
        };
        (wire, over)
    }

    /// How many connections were made over it.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// How many are open.
    pub(crate) fn open(&self) -> usize {
        self.state.open.load(Ordering::SeqCst)
    }

    /// Ends every connection.
    pub(crate) fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Ends every connection and lets none be made, until it is opened again.
    pub(crate) fn shut(&self) {
        self.state.shut.store(true, Ordering::SeqCst);
        self.cut();
    }

    /// Lets connections be made again.
    pub(crate) fn reopen(&self) {
        self.state.shut.store(false, Ordering::SeqCst);
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.serving.abort();
        self.cut();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        if state.shut.load(Ordering::SeqCst) {
            continue;
        }
        state.connections.fetch_add(1, Ordering::SeqCst);
        state.open.fetch_add(1, Ordering::SeqCst);
        let mut cuts = state.cuts.subscribe();
        let state = Arc::clone(&state);
        #[allow(clippy::disallowed_methods, reason = "ends with its connection")]
        tokio::spawn(async move {
            let piped = async {
                if let Ok(mut server) = TcpStream::connect(state.upstream).await {
                    let _ = stream.set_nodelay(true);
                    let _ = server.set_nodelay(true);
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
                }
            };
            tokio::select! {
                () = piped => {}
                _ = cuts.changed() => {}
            }
            state.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}
