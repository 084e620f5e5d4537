# Sourced by ./test and ./demo: installs what they need and what is missing, and says so. POSIX sh.

# Each as EXTENSION:DEBIAN-PACKAGE; what Debian's php-cli always has is not listed.
php_extensions='dom:php-xml mbstring:php-mbstring xml:php-xml xmlwriter:php-xml'

say() {
    printf '%s\n' "$*" >&2
}

die() {
    say "error: $*"
    [ -z "${log:-}" ] || rm -f "$log"
    exit 1
}

# Succeeds if one of the commands that match the pattern $1 exists.
have() {
    for command in $1; do
        ! command -v "$command" >/dev/null 2>&1 || return 0
    done
    return 1
}

# Prints the server as an argument of bootstrap(). Debian's package does not put it into PATH.
postgres_server() {
    have postgres && echo postgres:postgresql || echo '/usr/lib/postgresql/*/bin/postgres:postgresql'
}

# Prints nothing where Debian has no such package, as in Debian 12.
valkey_server() {
    ! apt-cache show valkey-server > /dev/null 2>&1 || echo valkey-server:valkey-server
}

# Installs what is missing. Arguments are further commands that are needed, as COMMAND:DEBIAN-PACKAGE.
bootstrap() {
    packages=$(missing_packages "$@")
    if [ -n "$packages" ]; then
        # shellcheck disable=SC2086
        install_packages $packages
        missing=$(missing_packages "$@")
        [ -z "$missing" ] || die "with$packages installed,$missing is still missing: is $(command -v php) another PHP?"
    fi
    php -r 'exit((int) (PHP_VERSION_ID < 80200));' ||
        die "PHP 8.2 or newer is needed, $(command -v php) is PHP $(php -r 'echo PHP_VERSION;')"
    install_vendor
}

# Prints the Debian packages that are missing, each once and after a blank.
missing_packages() {
    {
        loaded=
        if have php; then
            loaded=" $(php -m | tr '[:upper:]\n' '[:lower:] ')"
        else
            echo php-cli
        fi
        for pair in $php_extensions; do
            case $loaded in
                *" ${pair%%:*} "*) ;;
                *) echo "${pair#*:}" ;;
            esac
        done
        for pair in composer:composer "$@"; do
            have "${pair%%:*}" || echo "${pair#*:}"
        done
        # Composer unpacks archives with one of these.
        have unzip || have 7zz || have 7z ||
            { have php && php -r 'exit((int) !extension_loaded("zip"));'; } || echo unzip
    } | awk '!seen[$0]++ { printf " %s", $0 }'
}

install_packages() {
    have apt-get || die "these Debian packages are missing, and apt-get is not available to install them: $*"
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        have sudo || die "these Debian packages are missing: $*. Run this as root, or install sudo or the packages first"
        as_root=sudo
    fi

    say "Installing Debian packages: $*"
    case " $* " in
        *' postgresql '*) without_cluster apt_install "$@" ;;
        *) apt_install "$@" ;;
    esac || die "apt-get could not install $*: $(cat "$log")"
    forget_log
}

# Runs "$@" with a setting that keeps Debian's PostgreSQL from creating and starting a cluster. Tests create their own.
without_cluster() {
    settings=/etc/postgresql-common/createcluster.d
    $as_root mkdir -p "$settings"
    echo 'create_main_cluster = false' | $as_root tee "$settings/spindle.conf" >/dev/null
    "$@" && status=0 || status=$?
    $as_root rm -f "$settings/spindle.conf"
    $as_root rmdir "$settings" 2>/dev/null || true
    return "$status"
}

apt_install() {
    logged apt_get install --yes --no-install-recommends "$@" ||
        { logged apt_get update && logged apt_get install --yes --no-install-recommends "$@"; }
}

apt_get() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"
}

# Installs the Composer packages if they are missing, older than composer.json, or installed for another PHP.
# SPINDLE_COMPOSER_WITH='PACKAGE:VERSIONS ...' narrows the versions of packages.
install_vendor() {
    installed=vendor/composer/installed.json
    if [ -f "$installed" ] && [ ! composer.json -nt "$installed" ] && php vendor/autoload.php >/dev/null 2>&1; then
        return
    fi

    say 'Installing the Composer packages into vendor/'
    set --
    for package in ${SPINDLE_COMPOSER_WITH:-}; do
        set -- "$@" "--with=$package"
    done
    logged env COMPOSER_ALLOW_SUPERUSER=1 composer update --no-interaction --no-progress "$@" ||
        die "Composer could not install the packages: $(cat "$log")"
    forget_log
    touch "$installed"
}

# Runs "$@" without input and with its output in a file, $log.
logged() {
    log=${log:-$(mktemp)}
    "$@" </dev/null >"$log" 2>&1
}

forget_log() {
    rm -f "$log"
    log=
}
