package api

// PeerConnects is what became of a proxy's TCP connects to one peer while they
// were counted, as the kernel saw them.
type PeerConnects struct {
	Proxy       string `json:"proxy"`
	Peer        string `json:"peer"` // address and port; empty: all that are too many to be told apart
	Begun       uint64 `json:"begun"`
	Established uint64 `json:"established"`
	Refused     uint64 `json:"refused"`
	TimedOut    uint64 `json:"timed_out"` // the peer did not answer
	Unreachable uint64 `json:"unreachable"`
	GivenUp     uint64 `json:"given_up"` // the proxy closed the socket before there was an answer
	Closed      uint64 `json:"closed"`   // of those established
	Reset       uint64 `json:"reset"`    // of those closed, by the peer
	Lost        uint64 `json:"lost"`     // of those closed: the peer did not answer any more
}
