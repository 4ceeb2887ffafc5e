// Package webtest has the HTTP client of tests.
//
// Tests do not use http.DefaultClient: closing a server of package httptest closes the idle connections of
// http.DefaultTransport, so a test that ends can break a request of a test that runs in parallel, and a POST is not
// sent again. It is for tests only. Start with [Client].
package webtest

import (
	"net/http"
	"sync"
)

var transport = sync.OnceValue(func() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() })

// Client returns a client like http.DefaultClient, with the connections of Transport.
func Client() *http.Client { return &http.Client{Transport: Transport()} }

// Transport returns a transport like http.DefaultTransport, the same one at each call. No other package closes its connections.
func Transport() *http.Transport { return transport() }
