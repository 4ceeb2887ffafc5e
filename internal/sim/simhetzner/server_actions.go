package simhetzner

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/hetznerbill"
)

// actServer serves POST /servers/{id}/actions/{act}.
func actServer(s *Sim, c *call) (answer, error) {
	acts := map[string]func(*Sim, *call, *server) (map[string]any, error){
		"poweron": actPowerOn, "poweroff": actPowerOff, "shutdown": actShutdown, "reboot": actReset, "reset": actReset,
		"rebuild": actRebuild, "create_image": actCreateImage, "change_type": actChangeType, "change_protection": actProtect,
		"attach_to_network": actAttach, "detach_from_network": actDetach,
	}
	act, ok := acts[c.act]
	if !ok {
		return answer{}, newError("not_found", "there is no action %s here", c.act)
	}
	sv, err := s.unlockedServer(c)
	if err != nil {
		return answer{}, err
	}
	body, err := act(s, c, sv)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusCreated, body}, nil
}

// powerServer starts a power operation of the server's computer.
func (s *Sim) powerServer(sv *server, op PowerOp) *work {
	m := sv.machine
	if m == nil {
		return nil
	}
	return s.startWork(func(ctx context.Context) error { return m.Power(ctx, op) })
}

func (s *Sim) actionBody(a *action) map[string]any { return map[string]any{"action": s.wireAction(a)} }

// setStatus sets the server's status after an action; a failed action changes nothing.
func setStatus(sv *server, status string) func(time.Time, bool) {
	was := sv.status
	return func(_ time.Time, failed bool) {
		if sv.status = status; failed {
			sv.status = was
		}
	}
}

func actPowerOn(s *Sim, c *call, sv *server) (map[string]any, error) {
	p := plan{command: "start_server", took: s.cfg.Took.Start, server: sv, done: setStatus(sv, serverRunning)}
	if sv.status != serverRunning {
		p.work = s.powerServer(sv, PowerOn)
		sv.status, sv.synced = serverStarting, false
	}
	return s.actionBody(s.startAction(c, p)), nil
}

func actPowerOff(s *Sim, c *call, sv *server) (map[string]any, error) {
	p := plan{command: "stop_server", took: s.cfg.Took.Stop, server: sv, done: setStatus(sv, serverOff)}
	if sv.status != serverOff {
		p.work = s.powerServer(sv, PowerOff)
		sv.status = serverStopping
	}
	return s.actionBody(s.startAction(c, p)), nil
}

// actShutdown only sends the request; the server is off some time after the action has ended.
func actShutdown(s *Sim, c *call, sv *server) (map[string]any, error) {
	deaf := c.fault != nil && c.fault.Deaf
	if !deaf && sv.status == serverRunning {
		s.events.add(c.now.Add(s.cfg.Took.Shutdown), s.powerServer(sv, PowerShutdown), func(_ time.Time, err error) {
			if err == nil && sv.status == serverRunning {
				sv.status, sv.synced = serverOff, true
			}
		})
	}
	return s.actionBody(s.startAction(c, plan{command: "shutdown_server", took: min(s.cfg.Took.Other, s.cfg.Took.Shutdown), server: sv})), nil
}

func actReset(s *Sim, c *call, sv *server) (map[string]any, error) {
	m := sv.machine
	sv.synced = false
	p := plan{command: c.act + "_server", took: s.cfg.Took.Start, server: sv, done: setStatus(sv, serverRunning)}
	if m != nil {
		p.work = s.startWork(func(ctx context.Context) error {
			if err := m.Power(ctx, PowerOff); err != nil {
				return err
			}
			return m.Power(ctx, PowerOn)
		})
	}
	return s.actionBody(s.startAction(c, p)), nil
}

func actRebuild(s *Sim, c *call, sv *server) (map[string]any, error) {
	req, err := decode[schema.ServerActionRebuildRequest](c)
	if err != nil {
		return nil, err
	}
	img := s.images.find(req.Image, sv.typ.Architecture)
	switch {
	case sv.protection.Rebuild:
		return nil, newError("protected", "server rebuild is protected")
	case img == nil:
		return nil, newFieldError("image", "there is none like it")
	case img.arch != sv.typ.Architecture:
		return nil, newFieldError("image", "is for another architecture")
	case img.status != imageAvailable:
		return nil, newError("conflict", "image is not available")
	case img.diskGB > sv.diskGB:
		return nil, newFieldError("image", "image disk is bigger than the server's disk")
	case req.UserData != nil && len(*req.UserData) > maxUserData:
		return nil, newFieldError("user_data", "is longer than 32 KiB")
	}
	sv.image = img
	if req.UserData != nil { // otherwise the previous user data is reused
		sv.userData = *req.UserData
	}
	sv.status, sv.synced = serverRebuilding, false
	p := plan{command: "rebuild_server", took: s.cfg.Took.Rebuild, server: sv, on: imageRef(img), done: func(_ time.Time, failed bool) {
		if sv.status = serverRunning; failed {
			sv.status = serverOff
		}
	}}
	if m, spec := sv.machine, sv.spec(true); m != nil {
		p.work = s.startWork(func(ctx context.Context) error { return m.Rebuild(ctx, spec) })
	}
	body := s.actionBody(s.startAction(c, p))
	body["root_password"] = nil
	return body, nil
}

func actChangeType(s *Sim, c *call, sv *server) (map[string]any, error) {
	req, err := decode[schema.ServerActionChangeTypeRequest](c)
	if err != nil {
		return nil, err
	}
	typ := s.catalog.serverType(req.ServerType)
	switch {
	case typ == nil:
		return nil, newFieldError("server_type", "there is none like it")
	case sv.status != serverOff:
		return nil, newError("server_not_stopped", "server must be stopped")
	case typ.Architecture != sv.typ.Architecture || typ.Disk < sv.diskGB:
		return nil, newError("invalid_server_type", "server type does not fit")
	}
	p, ok := typ.prices[sv.location.Name]
	if !ok {
		return nil, newFieldError("server_type", "unsupported location for server type")
	}
	if err := s.stocks.takeServer(typ, sv.location); err != nil {
		return nil, err
	}
	return s.actionBody(s.startAction(c, plan{command: "change_server_type", took: s.cfg.Took.Start, server: sv, done: func(at time.Time, failed bool) {
		if failed {
			s.stocks.giveBack(typ, sv.location)
			return
		}
		s.stocks.giveBack(sv.typ, sv.location)
		if sv.typ = typ; req.UpgradeDisk {
			sv.diskGB = typ.Disk
		}
		sv.meter.stop(at)
		sv.meter = s.meters.start(meter{
			kind:     "server",
			id:       sv.id,
			name:     sv.name,
			labels:   sv.labels,
			typ:      typ.Name,
			location: sv.location.Name,
			Meter:    hetznerbill.Meter{Price: p, From: at},
		})
	}})), nil
}

func actProtect(s *Sim, c *call, sv *server) (map[string]any, error) {
	req, err := decode[schema.ServerActionChangeProtectionRequest](c)
	if err != nil {
		return nil, err
	}
	if req.Delete != nil {
		sv.protection.Delete = *req.Delete
	}
	if req.Rebuild != nil {
		sv.protection.Rebuild = *req.Rebuild
	}
	return s.actionBody(s.startAction(c, plan{command: "change_protection", server: sv})), nil
}

func actAttach(s *Sim, c *call, sv *server) (map[string]any, error) {
	req, err := decode[schema.ServerActionAttachToNetworkRequest](c)
	if err != nil {
		return nil, err
	}
	n := s.networks[req.Network]
	if n == nil {
		return nil, notFound("network", req.Network)
	}
	if slices.ContainsFunc(sv.nets, func(a attachment) bool { return a.network == n }) {
		return nil, newError("server_already_attached", "server is already attached to the network")
	}
	ip := n.freeAddress(s)
	if req.IP != nil {
		if ip, err = netip.ParseAddr(*req.IP); err != nil || !n.ipRange.Contains(ip) || n.usedAddresses(s)[ip] {
			return nil, newError("ip_not_available", "IP is not available in the network")
		}
	}
	if !ip.IsValid() {
		return nil, newError("no_space_left_in_ip_range", "no address is left in network %d", n.id)
	}
	sv.nets = append(sv.nets, attachment{n, ip})
	return s.actionBody(s.startAction(c, plan{command: "attach_to_network", took: s.cfg.Took.Other, server: sv, on: networkRef(n)})), nil
}

func actDetach(s *Sim, c *call, sv *server) (map[string]any, error) {
	req, err := decode[schema.ServerActionDetachFromNetworkRequest](c)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(sv.nets, func(a attachment) bool { return a.network.id == req.Network })
	if i < 0 {
		return nil, notFound("network", req.Network)
	}
	n := sv.nets[i].network
	sv.nets = slices.Delete(sv.nets, i, i+1)
	return s.actionBody(s.startAction(c, plan{command: "detach_from_network", took: s.cfg.Took.Other, server: sv, on: networkRef(n)})), nil
}
