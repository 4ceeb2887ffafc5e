package simgithub

// parts has the methods of a Sim, by subject. All need the lock of the Sim, except that the servers take it themselves.
type parts struct {
	json  encoder
	auth  authenticator
	find  finder
	pulls pulls
	git   gitServer
	rest  restServer
}

func partsOf(s *Sim) parts {
	return parts{encoder{s}, authenticator{s}, finder{s}, pulls{s}, gitServer{s}, restServer{s}}
}

type (
	encoder       struct{ s *Sim } // encodes objects as GitHub's JSON
	authenticator struct{ s *Sim } // checks credentials and issues tokens
	finder        struct{ s *Sim } // finds objects and their relations
	pulls         struct{ s *Sim } // returns the changes of pull requests
	gitServer     struct{ s *Sim } // serves git and Git LFS
	restServer    struct{ s *Sim } // serves the REST API
)

// The parts of a session have its acts, by subject.
type (
	webhooks struct{ x *session } // sends events to the App
	refs     struct{ x *session } // moves branches, and merges pull requests
	reviews  struct{ x *session } // reviews and their threads
	checks   struct{ x *session } // check runs and statuses
	quota    struct{ x *session } // rate limits
)

func (x *session) webhooks() webhooks { return webhooks{x} }
func (x *session) refs() refs         { return refs{x} }
func (x *session) reviews() reviews   { return reviews{x} }
func (x *session) checks() checks     { return checks{x} }
func (x *session) quota() quota       { return quota{x} }
