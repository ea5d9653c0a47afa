package raycluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// legacyFormats are the formats of the names that have a hashed form, without the hash. All but that of CASecret give the legacy name.
var legacyFormats = map[string]string{
	"ServiceAccount": "%s-oauth-proxy", "ProxyService": "%s-oauth", "CookieSecret": "%s-oauth-config", "ProxyTLS": "%s-proxy-tls-secret",
	"CASecret": "%s-ca-secret", "ClusterRoleBinding": "%s-%s-auth", "HeadPolicy": "%s-head", "WorkerPolicy": "%s-workers",
	"TokenSecret": "%s-oauth-token", "ProxyConfig": "%s-proxy-config", "HeadTLS": "%s-head-tls", "WorkerTLS": "%s-worker-tls",
}

// kindOf is the kind of the object of each field of Names: names must be unique within a kind.
var kindOf = map[string]string{
	"ServiceAccount": "ServiceAccount", "ProxyService": "Service", "HeadService": "Service", "CookieSecret": "Secret", "ProxyTLS": "Secret",
	"CASecret": "Secret", "TokenSecret": "Secret", "HeadTLS": "Secret", "WorkerTLS": "Secret", "ProxyConfig": "ConfigMap",
	"ClusterRoleBinding": "ClusterRoleBinding", "HeadPolicy": "NetworkPolicy", "WorkerPolicy": "NetworkPolicy", "Dashboard": "Route", "Client": "Route",
}

func namedCluster(name, namespace string, hashed bool) Cluster {
	metadata := map[string]any{"name": name, "namespace": namespace}
	if hashed {
		metadata["annotations"] = map[string]any{AnnotationVersion: ""}
	}
	return View(map[string]any{"metadata": metadata})
}

func fieldsOf(n Names) map[string]string {
	out := map[string]string{}
	for value, i := reflect.ValueOf(n), 0; i < value.NumField(); i++ {
		out[value.Type().Field(i).Name] = value.Field(i).String()
	}
	return out
}

// [raycluster-8] Hashed names are legacy names with a hash; only names that must be DNS labels are truncated, but not their hash.
func TestNamesFollowScheme(t *testing.T) {
	word := rapid.StringMatching(`[a-z]([-a-z0-9]{0,51}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		name, namespace := word.Draw(t, "name"), word.Draw(t, "namespace")
		hashed, legacy := fieldsOf(namedCluster(name, namespace, true).Names()), fieldsOf(namedCluster(name, namespace, false).Names())
		for field, format := range legacyFormats {
			base := fmt.Sprintf(format, name)
			if strings.Count(format, "%s") == 2 {
				base = fmt.Sprintf(format, name, namespace)
			}
			sum := sha256.Sum256([]byte("codeflare-raycluster-controller" + base))
			hash := "-" + hex.EncodeToString(sum[:])[:8]
			switch want := base + hash; {
			case field == "ProxyService" && len(want) > 63:
				if got := hashed[field]; len(got) != 63 || !strings.HasSuffix(got, hash) || !strings.HasPrefix(base, strings.TrimSuffix(got, hash)) {
					t.Errorf("%s is %s, want %s with a truncated base", field, got, want)
				}
			case hashed[field] != want:
				t.Errorf("%s is %s, want %s", field, hashed[field], want)
			}
			if field == "CASecret" {
				base = "ca-secret-" + name // another order than in the hashed name
			}
			if legacy[field] != base {
				t.Errorf("legacy %s is %s, want %s", field, legacy[field], base)
			}
		}
		for field, want := range map[string]string{"Dashboard": "ray-dashboard-" + name, "Client": "rayclient-" + name, "HeadService": name + "-head-svc"} {
			if hashed[field] != want || legacy[field] != want {
				t.Errorf("%s is %s and %s, want %s", field, hashed[field], legacy[field], want)
			}
		}
	})
	if all := len(fieldsOf(Names{})); all != len(legacyFormats)+3 || all != len(kindOf) {
		t.Errorf("Names has %d fields, but the tables of this test have %d and %d", all, len(legacyFormats)+3, len(kindOf))
	}
}

// Two clusters with hashed names in a namespace have no object of the same kind and name, even if one name is a prefix of the other.
func TestClustersShareNoNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.StringMatching(`[a-z][a-z0-9]{0,8}`).Draw(t, "name")
		second := first + rapid.SampledFrom([]string{"-oauth", "-head", "-workers", "-ca-secret", "-oauth-proxy", "-proxy", "-tls", "-head-tls", "x"}).Draw(t, "suffix")
		seen := map[string]string{}
		for _, name := range []string{first, second} {
			for field, value := range fieldsOf(namedCluster(name, "ns", true).Names()) {
				key := kindOf[field] + " " + value
				if other, found := seen[key]; found {
					t.Fatalf("%s of %s and %s are both %s", field, name, other, key)
				}
				seen[key] = field + " of " + name
			}
		}
	})
}

// [R16] [R29] Decide returns the expected mode for all combinations of OAuth, mTLS, issuer, trust in KubeRay, OpenShift and
// security that the user requests.
func TestDecideInvariants(t *testing.T) {
	bools := []bool{false, true}
	for _, issuer := range []Issuer{"", IssuerOperator, IssuerCertManager, IssuerPod} {
		for mask := range 1 << 7 {
			bit := func(i int) bool { return bools[mask>>i&1] }
			settings, openShift := config.RayCluster{OAuth: bit(0), MTLS: bit(1), Certificates: string(issuer)}, bit(2)
			if bit(6) {
				settings.KubeRaySecurity = config.KubeRaySecurityTrust
			}
			spec := map[string]any{}
			if bit(3) {
				spec["authOptions"] = map[string]any{"mode": "token"}
			}
			if bit(4) {
				spec["tlsOptions"] = map[string]any{"enabled": true}
			}
			if bit(5) {
				spec["networkPolicy"] = map[string]any{}
			}
			c := View(map[string]any{"metadata": map[string]any{"name": "c", "namespace": "n"}, "spec": spec})
			want := Mode{Policies: !bit(5) || !bit(6), MTLS: settings.MTLS && !bit(4)}
			switch {
			case settings.OAuth && bit(3) && bit(6):
				want.Auth = AuthRay
			case settings.OAuth && openShift:
				want.Auth = AuthOAuth
			case settings.OAuth:
				want.Auth = AuthProxy
			}
			if want.MTLS {
				want.Issuer = issuer
				if issuer == "" {
					want.Issuer = IssuerOperator
				}
			}
			got := Decide(settings, Platform{OpenShift: openShift, OAuthServer: openShift}, c, c)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings %+v, OpenShift %t, spec %v (-want +got):\n%s", settings, openShift, spec, diff)
			}
			// The mode of a new cluster is the same.
			if diff := cmp.Diff(got, Decide(settings, Platform{OpenShift: openShift, OAuthServer: openShift}, c, Cluster{})); diff != "" {
				t.Errorf("new cluster (-update +create):\n%s", diff)
			}
		}
	}
}

// anyValue draws any JSON value.
func anyValue(t *rapid.T, depth int) any {
	kinds := []string{"nil", "text", "number", "bool", "list", "object"}
	if depth == 0 {
		kinds = kinds[:4]
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "text":
		return rapid.SampledFrom([]string{"", "token", "server-cert", "oauth-proxy", "kube-rbac-proxy", "true", ManagerMultiKueue}).Draw(t, "text")
	case "number":
		return rapid.Int64Range(-1, 1).Draw(t, "number")
	case "bool":
		return rapid.Bool().Draw(t, "bool")
	case "list":
		list := make([]any, rapid.IntRange(0, 2).Draw(t, "length"))
		for i := range list {
			list[i] = anyValue(t, depth-1)
		}
		return list
	case "object":
		return anyObject(t, depth-1)
	default:
		return nil
	}
}

var knownFields = []string{
	"metadata", "spec", "name", "namespace", "annotations", AnnotationVersion, AnnotationCertificates, AnnotationKeepServiceAccount, "headGroupSpec",
	"template", "containers", "volumes", "serviceAccountName", "imagePullSecrets", "suspend", "managedBy", "ownerReferences", "controller", "kind",
	"secret", "workerGroupSpecs", "headService", "authOptions", "mode", "tlsOptions", "enabled", "networkPolicy", "deletionTimestamp",
}

func anyObject(t *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for _, field := range rapid.SliceOfNDistinct(rapid.SampledFrom(knownFields), 0, 4, rapid.ID[string]).Draw(t, "fields") {
		object[field] = anyValue(t, depth)
	}
	return object
}

// View neither panics on nor changes any object, and its results are consistent.
func TestViewAcceptsAnyObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := anyObject(t, 3)
		spec["headGroupSpec"] = map[string]any{"template": map[string]any{"spec": anyObject(t, 3)}}
		object := map[string]any{"metadata": anyValue(t, 3), "spec": spec}
		c := View(object)
		before := fmt.Sprint(object)
		injected, user := c.Injected(), c.UserSecurity()
		if injected.PodIssued && !injected.MTLS || user.KubernetesToken && !user.Token {
			t.Errorf("contradictory injections %+v or user security %+v", injected, user)
		}
		for _, previous := range []Cluster{c, {}} {
			mode := Decide(config.RayCluster{OAuth: true, MTLS: true}, Platform{OpenShift: true, OAuthServer: true}, c, previous)
			if mode.MTLS != mode.Issuer.Valid() || mode.KeepsServiceAccount && !mode.Auth.UsesSidecar() || !mode.Active() && (mode.MTLS || mode.Policies || mode.Auth != AuthNone) {
				t.Errorf("contradictory mode %+v of %v", mode, object)
			}
			if previous.Object() != nil && mode.Active() && injected.PodIssued && mode.MTLS && mode.Issuer != IssuerPod {
				t.Errorf("got issuer %s for pods that issue their own certificates, want %s", mode.Issuer, IssuerPod)
			}
		}
		_, _, _, _, _ = c.Names(), c.OwnerKind(), c.DashboardHostLabel(), c.ClientDNSName("d"), c.WorkerGroupCount()
		if c.UserServiceAccount() == "" && Decide(config.RayCluster{OAuth: true}, Platform{}, c, Cluster{}).KeepsServiceAccount {
			t.Errorf("a ServiceAccount that is not set is kept: %v", object)
		}
		if after := fmt.Sprint(object); after != before {
			t.Errorf("the object was changed from\n%s\nto\n%s", before, after)
		}
	})
}

// [raycluster-13] The variables of Ray containers refer to files of the volumes, for each issuer.
func TestTLSVariablesReferToMountedFiles(t *testing.T) {
	for _, issuer := range []Issuer{IssuerOperator, IssuerCertManager, IssuerPod} {
		for _, head := range []bool{true, false} {
			tls := TLS{Issuer: issuer, Names: namedCluster("c", "n", true).Names(), Head: head, SignedNames: []string{"a", "b"}}
			files := map[string]bool{}
			paths := map[string]string{}
			for _, m := range tls.Mounts() {
				paths[*m.Name] = *m.MountPath
			}
			for _, v := range tls.Volumes() {
				if v.Secret == nil {
					continue
				}
				for _, item := range v.Secret.Items {
					files[paths[*v.Name]+"/"+*item.Path] = true
				}
			}
			if issuer == IssuerPod { // the init container writes the files
				script := SignCommand()[2]
				for _, name := range []string{"server.crt", "server.key"} {
					files["/home/ray/workspace/tls/"+name] = strings.HasPrefix(script, "cd /home/ray/workspace/tls && ") && strings.Contains(script, "out "+name)
				}
				files["/home/ray/workspace/tls/server.key"] = strings.Contains(script, "-keyout server.key")
				files["/home/ray/workspace/tls/ca.crt"] = strings.Contains(script, "cp /home/ray/workspace/ca/* .")
			}
			var referenced []string
			for _, variable := range TLSEnv() {
				if variable.Value != nil && strings.HasPrefix(*variable.Value, "/") {
					referenced = append(referenced, *variable.Value)
				}
			}
			if len(referenced) != 3 || slices.ContainsFunc(referenced, func(path string) bool { return !files[path] }) {
				t.Errorf("%s, head %t: variables refer to %v, but the volumes contain %v", issuer, head, referenced, files)
			}
		}
	}
}
