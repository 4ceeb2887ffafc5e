package state

// vm checks one row of a VM.
func (c *checker) vm(key string) {
	c.want(key, key)
	var row VMRow
	if err := c.store.codec.GetJSON(c.r, key, &row); err != nil {
		c.problem("%v", err)
		return
	}
	if vmKey(row.Name) != key {
		c.problem("%s holds VM %s", key, row.Name)
	}
	if row.Phase == VMGone && row.EndedAt.IsZero() {
		c.problem("%s is gone and has no end", key)
	}
	if row.Phase.Over() && row.Why == "" {
		c.problem("%s is %s for no reason", key, row.Phase)
	}
	if row.EndedAt.IsZero() {
		c.want(keyRoster, key)
	}
}

// roster checks that exactly the VMs whose bill is open are in it, as their rows say.
func (c *checker) roster() {
	c.want(keyRoster, keyRoster)
	o, err := c.store.getRoster(c.r)
	if err != nil {
		c.problem("%v", err)
		return
	}
	listed := map[string]bool{}
	for _, v := range o.Open {
		row, err := c.store.getVM(c.r, v.Name)
		if err != nil {
			c.problem("%s: %v", keyRoster, err)
			continue
		}
		if listed[v.Name] {
			c.problem("%s has VM %s twice", keyRoster, v.Name)
		}
		listed[v.Name] = true
		if !row.EndedAt.IsZero() {
			c.problem("%s has VM %s, whose bill is closed", keyRoster, v.Name)
		}
		if v.Task != row.Task || !v.CreatedAt.Equal(row.CreatedAt) || v.MicroHour != row.MicroHour || v.Paid != row.Paid || v.Phase.Over() != row.Phase.Over() {
			c.problem("%s says of VM %s what its row does not", keyRoster, v.Name)
		}
	}
	for key := range c.all {
		if len(key) <= len(preVM) || key[:len(preVM)] != preVM {
			continue
		}
		if row, err := c.store.getVM(c.r, key[len(preVM):]); err == nil && row.EndedAt.IsZero() && !listed[row.Name] {
			c.problem("%s is not in %s", key, keyRoster)
		}
	}
}
