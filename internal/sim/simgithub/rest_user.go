package simgithub

import "time"

func userRoutes() []route {
	return []route{
		{"GET", "/users/{login}", getUser},
		{"GET", "/user", currentUser},
		{"GET", "/user/{id}", getUserByID},
		{"GET", "/user/installations", onlySignedIn(userInstallations)},
		{"GET", "/user/installations/{id}/repositories", onlySignedIn(userInstallationRepos)},
		{"GET", "/rate_limit", rateLimit},
		{"GET", "/meta", meta},
	}
}

func getUser(c *call) (any, error) {
	u, ok := c.s.users[c.vars["login"]]
	if !ok {
		return nil, errNotFound()
	}
	return c.s.json.fullUser(u), nil
}

func getUserByID(c *call) (any, error) {
	for _, u := range c.s.users {
		if u.ID == c.id("id") {
			return c.s.json.fullUser(u), nil
		}
	}
	return nil, errNotFound()
}

func currentUser(c *call) (any, error) {
	if c.viaApp() {
		return nil, errIntegration()
	}
	if c.by == nil {
		return nil, errNeedAuth()
	}
	return c.s.json.fullUser(c.by), nil
}

// fullUser encodes an account with its profile.
func (j encoder) fullUser(u *User) obj {
	o, _ := j.user(u.Login).(obj)
	for _, k := range []string{"name", "company", "location", "email", "hireable", "bio"} {
		o[k] = nil
	}
	if u.Name != "" {
		o["name"] = u.Name
	}
	o["blog"] = ""
	for _, k := range []string{"public_repos", "public_gists", "followers", "following"} {
		o[k] = 0
	}
	o["created_at"], o["updated_at"] = stamp(u.CreatedAt), stamp(u.CreatedAt)
	return o
}

func rateLimit(c *call) (any, error) {
	one := func(resource string) obj {
		b, limit := c.quota().bucket(resource), c.s.cfg.RateLimit
		return obj{"limit": limit, "used": b.used, "remaining": limit - b.used, "reset": b.reset.Unix()}
	}
	fixed := func(limit int) obj {
		return obj{"limit": limit, "used": 0, "remaining": limit, "reset": c.s.cfg.AuthNow().Add(time.Hour).Unix()}
	}
	return obj{
		"resources": obj{"core": one("core"), "graphql": one("graphql"), "search": fixed(30)}, "rate": one("core"),
	}, nil
}

func meta(c *call) (any, error) {
	return obj{
		"verifiable_password_authentication": false, "installed_version": c.s.cfg.EnterpriseVersion, "hooks": []string{"127.0.0.0/8", "::1/128"},
	}, nil
}
