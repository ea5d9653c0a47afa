package raycluster

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "raycluster"
