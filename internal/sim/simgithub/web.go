package simgithub

import "net/http"

// pages serves what is neither API nor git: the pages for people.
func (s *Sim) pages() http.Handler { return http.NotFoundHandler() }
