package hetzner

import "context"

// Setup finds or creates the deployment's key and firewalls, as the next order would.
func (p *Provider) Setup(ctx context.Context) error {
	p.prerequisites.invalidate()
	_, _, err := p.prerequisites.getShared(ctx)
	return err
}
