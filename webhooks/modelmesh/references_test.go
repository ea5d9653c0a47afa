package modelmesh

import (
	"context"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// A ResourceClaim referenced by name requires the permission to use it, as in other pods.
func TestResourceClaimsRequirePermission(t *testing.T) {
	rules := pkgadmission.Rules{Mode: pkgadmission.Enforce, Level: pkgadmission.Baseline, Namespace: "opendatahub"}
	none := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return false, nil
	}
	u, err := referencesOfObject(rules, []byte(`{"spec":{"multiModel":true,"resourceClaims":[{"name":"gpu","resourceClaimName":"one"}]}}`), "team")
	if err != nil {
		t.Fatal(err)
	}
	judgement, err := rules.Review(t.Context(), none, authenticationv1.UserInfo{Username: "u"}, u, pkgadmission.References{})
	if err != nil || len(judgement.Errors) != 1 || judgement.Errors[0].Field != "spec.resourceClaims[0]" {
		t.Errorf("unexpected judgement.Errors %v, error %v", judgement.Errors, err)
	}
}

// Publishing models, or removing authentication, requires the permission to create pods. Ending a publication does not.
func TestPublicationRequiresPermission(t *testing.T) {
	rules := pkgadmission.Rules{Mode: pkgadmission.Enforce, Level: pkgadmission.Baseline, Namespace: "opendatahub"}
	none := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return false, nil
	}
	uses := func(annotations string) pkgadmission.References {
		u, err := referencesOfObject(rules, []byte(`{"metadata":{"annotations":`+annotations+`},"spec":{"multiModel":true}}`), "team")
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	const route, guarded = `{"enable-route":"true"}`, `{"enable-route":"true","enable-auth":"true"}`
	for _, tc := range []struct {
		before, now string
		refused     []string
	}{
		{"{}", "{}", nil},
		{"{}", `{"enable-auth":"true"}`, nil},
		{"{}", guarded, []string{"metadata.annotations[enable-route]"}},
		{"{}", route, []string{"metadata.annotations[enable-route]", "metadata.annotations[enable-auth]"}},
		{guarded, route, []string{"metadata.annotations[enable-auth]"}},
		{guarded, `{"enable-route":"true","enable-auth":"True"}`, []string{"metadata.annotations[enable-auth]"}},
		{route, guarded, nil},
		{guarded, "{}", nil},
	} {
		judgement, err := rules.Review(t.Context(), none, authenticationv1.UserInfo{Username: "u"}, uses(tc.now), uses(tc.before))
		var fields []string
		for _, one := range judgement.Errors {
			fields = append(fields, one.Field)
		}
		if err != nil || !slices.Equal(fields, tc.refused) {
			t.Errorf("%s to %s: %v %v", tc.before, tc.now, judgement.Errors, err)
		}
	}
}
