package spool

import (
	"context"
	"errors"
	"time"
)

// maxReplies is how often a receiver that answers may fail on one item before
// the item is dropped, so that it does not hold up the others for ever.
const maxReplies = 30

// Delivery sends one item. It returns nil when the receiver has it, a
// *ReplyError when it answered otherwise, any other error when it is away.
type Delivery func(ctx context.Context, key string, data []byte) error

// Run delivers until the context ends. It calls report after each failure, with
// whether the item was given up.
func (s *Spool) Run(ctx context.Context, deliver Delivery, report func(key string, err error, dropped bool)) {
	failures := 0
	for ctx.Err() == nil {
		it, ok := s.first()
		if !ok {
			select {
			case <-ctx.Done():
			case <-s.wake:
			}
			continue
		}
		data, err := s.read(it)
		if err == nil {
			err = deliver(ctx, it.key, data)
		} else {
			err = &ReplyError{Final: true, Text: err.Error()}
		}
		if ctx.Err() != nil && err != nil {
			return
		}
		retry := s.settle(it, err, report)
		if !retry {
			failures = 0
			continue
		}
		failures++
		select {
		case <-ctx.Done():
		case <-time.After(s.limits.Pause(failures)):
		}
	}
}

func (s *Spool) first() (item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.items) == 0 {
		return item{}, false
	}
	return s.items[0], true
}

// settle notes the outcome of an attempt and says whether to try again later.
func (s *Spool) settle(it item, err error, report func(string, error, bool)) bool {
	s.mu.Lock()
	if err == nil {
		s.counts.Delivered++
		s.remove(it)
		s.mu.Unlock()
		return false
	}
	s.counts.Failed++
	var reply *ReplyError
	dropped := false
	if errors.As(err, &reply) {
		dropped = reply.Final || s.answered(it) >= maxReplies
	}
	if dropped {
		s.drop(it)
	}
	s.saveWaiting()
	s.mu.Unlock()
	report(it.key, err, dropped)
	return !dropped
}

// answered counts one more answer to an item. It may be gone already.
func (s *Spool) answered(it item) int {
	for i := range s.items {
		if s.items[i].key == it.key {
			s.items[i].replies++
			return s.items[i].replies
		}
	}
	return maxReplies
}
