// Package names defines label and annotation keys of this operator, and the rules for names of objects. Names and labels are deterministic,
// because the operator finds its objects by them.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

const (
	// OperatorLabel is set on every object that this operator applies. The cache of the manager selects objects by it.
	OperatorLabel = "platform.opendatahub.io/operator"
	// OperatorName is the value of OperatorLabel.
	OperatorName = "odh-platform-operator"
	// ComponentLabel contains the name of the component that manages an object.
	ComponentLabel = "platform.opendatahub.io/component"
	// HostLabel contains the host of an Ingress of this operator, truncated like a name.
	HostLabel = "platform.opendatahub.io/host"
	// PausedAnnotation pauses the reconciliation of a custom resource while its value is true, see [Paused].
	PausedAnnotation = "platform.opendatahub.io/paused"
)

// componentNames are the values of ComponentLabel.
var componentNames = []string{"appwrapper", "mlflow", "modelcatalog", "modelmesh", "modelregistry", "olm", "platform", "raycluster"}

// IsComponent reports whether this operator has a component of that name.
func IsComponent(name string) bool { return slices.Contains(componentNames, name) }

// hashLength is the number of hexadecimal digits of the hash in a truncated name.
const hashLength = 8

// Labels returns a new map with the two labels of all objects of a component.
func Labels(component string) map[string]string {
	return map[string]string{OperatorLabel: OperatorName, ComponentLabel: component}
}

// Paused parses PausedAnnotation, ignoring case: true, t, yes, y, on and 1 pause; false, f, no, n, off, 0, an empty and a missing value do
// not. Other values are invalid and do not pause.
func Paused(annotations map[string]string) (paused, valid bool) {
	switch strings.ToLower(strings.TrimSpace(annotations[PausedAnnotation])) {
	case "true", "t", "yes", "y", "on", "1":
		return true, true
	case "false", "f", "no", "n", "off", "0", "":
		return false, true
	}
	return false, false
}

// Truncate returns name if it has at most limit bytes, and otherwise a prefix with a hash of the whole name. Names with the same prefix
// remain distinct. The result is deterministic. A truncated name ends in a letter or digit, as required for DNS labels.
func Truncate(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := hex.EncodeToString(sum[:])[:max(0, min(hashLength, limit))]
	head := strings.TrimRightFunc(name[:max(0, limit-hashLength-1)], func(r rune) bool { return !isAlphanumeric(r) })
	if head == "" {
		return tail
	}
	return head + "-" + tail
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
