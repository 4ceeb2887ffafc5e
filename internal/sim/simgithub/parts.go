package simgithub

// The parts of a Sim. Each has the methods of one subject; all of them need the lock of the Sim.
type (
	encoder       struct{ s *Sim } // writes things as GitHub's JSON
	authenticator struct{ s *Sim } // checks credentials and issues tokens
	finder        struct{ s *Sim } // finds things and how they are related
	pulls         struct{ s *Sim } // reads the changes of pull requests
	gitServer     struct{ s *Sim } // serves git and Git LFS; takes the lock itself
	restServer    struct{ s *Sim } // serves the REST API; takes the lock itself
)

// The parts of a session. Each has the acts of one subject.
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
