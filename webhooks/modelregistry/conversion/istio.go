package conversion

import "github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"

// ReplaceIstio replaces the block istio of a v1alpha1 spec by the proxy that does its work, and reports whether there was
// one. A proxy that the spec has already stays as it is.
func ReplaceIstio(spec map[string]any) bool {
	istio, ok := spec[fieldIstio].(map[string]any)
	if !ok {
		return false
	}
	delete(spec, fieldIstio)
	if _, has := spec[fieldOAuthProxy]; !has {
		spec[fieldOAuthProxy] = proxyFor(istio)
	}
	return true
}

func proxyFor(istio map[string]any) map[string]any {
	proxy := map[string]any{
		"port": int64(v1beta1.DefaultProxyPort), "routePort": int64(v1beta1.DefaultRoutePort), "serviceRoute": string(v1beta1.RouteEnabled),
	}
	gateway, ok := istio["gateway"].(map[string]any)
	if !ok {
		proxy["serviceRoute"] = string(v1beta1.RouteDisabled)
		return proxy
	}
	if domain, _ := gateway["domain"].(string); domain != "" {
		proxy["domain"] = domain
	}
	rest, _ := gateway["rest"].(map[string]any)
	if rest["gatewayRoute"] == string(v1beta1.RouteDisabled) {
		proxy["serviceRoute"] = string(v1beta1.RouteDisabled)
	}
	if port, given := rest["port"]; given && rest["tls"] != nil {
		proxy["routePort"] = port
	}
	return proxy
}
