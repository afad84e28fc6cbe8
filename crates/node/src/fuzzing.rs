//! What other nodes can send, for the fuzz targets of `crates/fuzz`.

use crate::wire::Wire;
use gondwana_coherence::PROTOCOLS;
use gondwana_coherence::sync::SyncMessage;

/// The head of a message as the service thread receives it.
///
/// # Panics
/// If what was understood is not what would be sent.
pub fn message(head: &[u8]) {
    if let Some(message) = SyncMessage::from_bytes(head) {
        assert_eq!(SyncMessage::from_bytes(&message.to_bytes()), Some(message));
        return;
    }
    for protocol in PROTOCOLS {
        if let Some(sent) = (protocol.recode)(head) {
            assert_eq!((protocol.recode)(&sent).as_ref(), Some(&sent));
        }
    }
    let Ok(wire) = postcard::from_bytes::<Wire>(head) else { return };
    let sent = postcard::to_stdvec(&wire).expect("messages can be encoded");
    let again: Wire = postcard::from_bytes(&sent).expect("what is sent is understood");
    assert_eq!(postcard::to_stdvec(&again).as_ref(), Ok(&sent));
    assert_eq!(wire.kind(), again.kind());
}
