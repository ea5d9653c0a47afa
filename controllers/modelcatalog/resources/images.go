package resources

import (
	"fmt"
	"regexp"
	"strings"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
)

// imageVersion is what may follow the repository of an image: a digest or a tag.
var imageVersion = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9._-]{0,127})$`)

// CheckImages refuses what is neither digest nor tag. The schema does so too; that of another release may not.
func CheckImages(c *aihubv1alpha1.Catalog) error {
	for field, version := range map[string]string{
		"spec.catalogDataImage": c.Spec.CatalogDataImage, "spec.benchmarkDataImage": c.Spec.BenchmarkDataImage,
	} {
		if version = strings.TrimSpace(version); version != "" && !imageVersion.MatchString(version) {
			return fmt.Errorf("%s is %q; it must be the digest of an image (sha256: and 64 of 0-9a-f) or a tag such as v1.2, without registry and repository", field, version)
		}
	}
	return nil
}

// inVersion puts a digest or a tag in place of those that an image has. Without one the image stays as it is.
func inVersion(image, version string) string {
	version = strings.TrimSpace(version)
	if version == "" {
		return image
	}
	repository, _, _ := strings.Cut(image, "@")
	if tag := strings.LastIndex(repository, ":"); tag > strings.LastIndex(repository, "/") { // else it is the port of a registry
		repository = repository[:tag]
	}
	if strings.Contains(version, ":") {
		return repository + "@" + version
	}
	return repository + ":" + version
}
