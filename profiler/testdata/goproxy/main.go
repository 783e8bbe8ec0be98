// Command goproxy proxies to itself, so that tests have a busy program of Go.
package main

import (
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

func main() {
	target := &url.URL{Scheme: "http", Host: os.Args[1]}
	http.HandleFunc("/text", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("some text")) })
	http.Handle("/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.URL.Path = "/text"
	}})
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
