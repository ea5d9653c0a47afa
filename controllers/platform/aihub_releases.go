package platform

import (
	"slices"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
)

// unknownVersion stands where nobody knows a version.
const unknownVersion = "unknown"

// fallbackRelease is what an AIHub reports when the program names no release.
var fallbackRelease = platformv1alpha1.Release{
	Name: "model-registry-operator", Version: unknownVersion, RepoURL: "https://github.com/opendatahub-io/model-registry-operator",
}

// hubReleases lists the releases of the program, of each name the first one, and then that of the platform, if it tells its
// version. No entry is without a version, and there is always one.
func hubReleases(ours []platformv1alpha1.Release, platform string) []platformv1alpha1.Release {
	var all []platformv1alpha1.Release
	known := func(name string) bool {
		return slices.ContainsFunc(all, func(r platformv1alpha1.Release) bool { return r.Name == name })
	}
	for _, r := range ours {
		if r.Name == "" || r.Name == platformRelease || known(r.Name) {
			continue
		}
		if r.Version == "" {
			r.Version = unknownVersion
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		all = append(all, fallbackRelease)
	}
	if platform != "" {
		all = append(all, platformv1alpha1.Release{Name: platformRelease, Version: platform})
	}
	return all
}
