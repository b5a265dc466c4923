from heed.cli.main import main

raise SystemExit(main())
