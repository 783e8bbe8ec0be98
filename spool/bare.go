package spool

import (
	"errors"
	"net/url"
)

// bare drops the URL from an error of net/http: webhooks carry their secret in
// it, and errors go to the log.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
