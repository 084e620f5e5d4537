<?php

declare(strict_types=1);

// The application, for `spindle serve`, public/index.php and tests. Its settings are environment variables.

use Aircraft\Services;
use Aircraft\Settings;

require_once __DIR__ . '/../../vendor/autoload.php';

$settings = Settings::ofEnvironment();

return (\PHP_SAPI === 'cli' ? Services::ofServer($settings) : Services::ofRequest($settings))->application();
