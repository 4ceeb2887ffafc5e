package simhetzner

// offer is a server type in a place.
type offer struct{ typ, location string }

// stock is the number of available servers of an offer.
type stock struct {
	left    int  // negative: unlimited
	claim   bool // availability in the list of types
	claimed bool // claim was set and need not be true
}

// stocks holds the stock of each offer that was asked for.
type stocks map[offer]*stock

// find returns the stock of a server type in a location.
func (all stocks) find(typ, where string) *stock {
	o := offer{typ, where}
	if all[o] == nil {
		all[o] = &stock{left: -1}
	}
	return all[o]
}

// takeServer takes a server of a type in a location, or fails if none is left.
func (all stocks) takeServer(t *serverType, l *location) error {
	st := all.find(t.Name, l.Name)
	if st.left == 0 {
		return newError("resource_unavailable", "error during placement")
	}
	if st.left > 0 {
		st.left--
	}
	return nil
}

// giveBack makes room for another server.
func (all stocks) giveBack(t *serverType, l *location) {
	if st := all.find(t.Name, l.Name); st.left >= 0 {
		st.left++
	}
}

// available returns the availability in the list of server types.
func (all stocks) available(typ, where string) bool {
	st := all.find(typ, where)
	if st.claimed {
		return st.claim
	}
	return st.left != 0
}

// SetStock sets how many more servers of a type can be ordered in a location; negative, the default, means unlimited.
// Deleting a server makes room for another.
func (s *Sim) SetStock(typ, location string, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stocks.find(typ, location).left = left
}

// SetStockAll sets the stock of every server type in every location.
func (s *Sim) SetStockAll(left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.catalog.types {
		for where := range t.prices {
			s.stocks.find(t.Name, where).left = left
		}
	}
}

// Claim sets the availability that the list of server types states for a type in a location, true or not. By default
// the list is right.
func (s *Sim) Claim(typ, location string, available bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stocks.find(typ, location)
	st.claim, st.claimed = available, true
}
