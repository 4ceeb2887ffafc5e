package simhetzner

// offer is a server type in a place.
type offer struct{ typ, location string }

// stock is the number of available servers of an offer.
type stock struct {
	left    int  // negative: unlimited
	claim   bool // availability in the list of types
	claimed bool // claim was set and need not be true
}

func (s *Sim) stockOf(typ, where string) *stock {
	o := offer{typ, where}
	if s.stock[o] == nil {
		s.stock[o] = &stock{left: -1}
	}
	return s.stock[o]
}

// SetStock sets how many more servers of a type can be ordered in a location; negative, the default, means unlimited.
// Deleting a server makes room for another.
func (s *Sim) SetStock(typ, location string, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stockOf(typ, location).left = left
}

// SetStockAll does so for every type in every place.
func (s *Sim) SetStockAll(left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.catalog.types {
		for where := range t.prices {
			s.stockOf(t.Name, where).left = left
		}
	}
}

// Claim has the list of server types say whether a type is available in a place, true or not. Without it
// the list is right.
func (s *Sim) Claim(typ, location string, available bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stockOf(typ, location)
	st.claim, st.claimed = available, true
}

func (s *Sim) takeStock(t *serverType, l *location) error {
	st := s.stockOf(t.Name, l.Name)
	if st.left == 0 {
		return fail("resource_unavailable", "error during placement")
	}
	if st.left > 0 {
		st.left--
	}
	return nil
}

func (s *Sim) giveBack(t *serverType, l *location) {
	if st := s.stockOf(t.Name, l.Name); st.left >= 0 {
		st.left++
	}
}

func (s *Sim) available(typ, where string) bool {
	st := s.stockOf(typ, where)
	if st.claimed {
		return st.claim
	}
	return st.left != 0
}
