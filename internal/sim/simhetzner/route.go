package simhetzner

import (
	"net/http"
	"strings"
)

// routes returns the API's handlers by route.
func routes() map[string]handler {
	return map[string]handler{
		"GET /servers":                     listServers,
		"POST /servers":                    createServer,
		"GET /servers/{id}":                getServer,
		"PUT /servers/{id}":                updateServer,
		"DELETE /servers/{id}":             deleteServer,
		"POST /servers/{id}/actions/{act}": actServer,
		"GET /servers/{id}/actions":        listServerActions,
		"GET /servers/actions":             listServerActions,
		"GET /actions":                     listActions,
		"GET /actions/{id}":                getAction,

		"GET /images":         listImages,
		"GET /images/{id}":    getImage,
		"PUT /images/{id}":    updateImage,
		"DELETE /images/{id}": deleteImage,

		"GET /ssh_keys":         listKeys,
		"POST /ssh_keys":        createKey,
		"GET /ssh_keys/{id}":    getKey,
		"PUT /ssh_keys/{id}":    updateKey,
		"DELETE /ssh_keys/{id}": deleteKey,

		"GET /firewalls":                     listFirewalls,
		"POST /firewalls":                    createFirewall,
		"GET /firewalls/{id}":                getFirewall,
		"PUT /firewalls/{id}":                updateFirewall,
		"DELETE /firewalls/{id}":             deleteFirewall,
		"POST /firewalls/{id}/actions/{act}": actFirewall,

		"GET /networks":         listNetworks,
		"POST /networks":        createNetwork,
		"GET /networks/{id}":    getNetwork,
		"PUT /networks/{id}":    updateNetwork,
		"DELETE /networks/{id}": deleteNetwork,

		"GET /volumes":                     listVolumes,
		"POST /volumes":                    createVolume,
		"GET /volumes/{id}":                getVolume,
		"PUT /volumes/{id}":                updateVolume,
		"DELETE /volumes/{id}":             deleteVolume,
		"POST /volumes/{id}/actions/{act}": actVolume,

		"GET /primary_ips":         listPrimaryIPs,
		"POST /primary_ips":        createPrimaryIP,
		"GET /primary_ips/{id}":    getPrimaryIP,
		"PUT /primary_ips/{id}":    updatePrimaryIP,
		"DELETE /primary_ips/{id}": deletePrimaryIP,

		"GET /server_types":      listTypes,
		"GET /server_types/{id}": getType,
		"GET /locations":         listLocations,
		"GET /locations/{id}":    getLocation,
		"GET /pricing":           getPricing,

		"GET /datacenters":      removedRoute,
		"GET /datacenters/{id}": removedRoute,
	}
}

func removedRoute(*Sim, *call) (answer, error) {
	return answer{}, newError(codeDeprecated, "this endpoint has been removed")
}

func unknownRoute(*Sim, *call) (answer, error) {
	return answer{}, newError("not_found", "there is nothing here")
}

func (s *Sim) router() *http.ServeMux {
	mux := http.NewServeMux()
	for route, h := range routes() {
		method, path, _ := strings.Cut(route, " ")
		mux.Handle(method+" /v1"+path, s.serve(route, h))
	}
	mux.Handle("/v1/", s.serve("(unknown)", unknownRoute))
	s.ownRoutes(mux)
	return mux
}
