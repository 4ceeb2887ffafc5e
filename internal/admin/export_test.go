package admin

import "net/http"

// Patterns returns the patterns of all routes behind the login.
func (p *Pages) Patterns() (list []string) {
	for _, rt := range p.pages.routes(http.NotFoundHandler()) {
		list = append(list, rt.pattern)
	}
	return list
}
