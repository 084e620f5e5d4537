<?php

declare(strict_types=1);

/*
 * The aircraft application over the Spindle of the checkout that is measured. examples/aircraft/app.php, which does the
 * same, would load that of this checkout.
 */

use Aircraft\Services;
use Aircraft\Settings;

require_once __DIR__ . '/../autoload.php';

return Services::ofServer(Settings::ofEnvironment())->application();
